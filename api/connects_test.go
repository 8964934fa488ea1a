package api_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/api"
)

// TestAnAgentIsToldHowToConnect: with its token and whenever it is looked at, the address
// of this very installation and a command line that needs no token; the list tells neither.
func TestAnAgentIsToldHowToConnect(t *testing.T) {
	r := newRig(t)
	var added api.ClientToken
	r.into(&added, "POST", "/v1/clients", `{"name":"claude & co"}`)
	var shown api.Client
	r.into(&shown, "GET", "/v1/clients/claude%20&%20co", "")
	for what, got := range map[string]*api.Connects{"with its token": added.Connects, "looked at": shown.Connects} {
		if got == nil || !strings.HasPrefix(got.Address, "http://127.0.0.1:") || !strings.HasSuffix(got.Address, "/mcp") {
			t.Fatalf("%s: the address is %+v", what, got)
		}
		if !filepath.IsAbs(got.Command) || !slices.Equal(got.Args, []string{"mcp", "--client", "claude & co", "--home", r.dir}) {
			t.Errorf("%s: the command is %q %q", what, got.Command, got.Args)
		}
		if strings.Contains(strings.Join(got.Args, " "), added.Token) {
			t.Errorf("%s: the token is an argument", what)
		}
	}
	var all api.ClientList
	r.into(&all, "GET", "/v1/clients", "")
	for _, one := range all.Clients {
		if one.Connects != nil {
			t.Errorf("the list tells how %s connects", one.Name)
		}
	}
}
