package host_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/host"
	"sallyport/runtime/mcp"
	"sallyport/runtime/updates"
)

// TestUpdatesAreAskedForOnDemandAtPublicAddresses: nobody is asked until somebody wants to
// know; then once, at a public address, or at the machine that the operator named.
func TestUpdatesAreAskedForOnDemandAtPublicAddresses(t *testing.T) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat("u", ed25519.SeedSize)))
	public := private.Public().(ed25519.PublicKey)
	raw, err := json.Marshal(updates.Manifest{Schema: updates.Schema, Version: "99.0.0", Date: time.Now().Add(-time.Hour), Expires: time.Now().Add(24 * time.Hour),
		Notes: "https://example.com/99", Files: []updates.File{{OS: "plan9", Arch: "amd64", Kind: "zip", URL: "https://example.com/x", SHA256: strings.Repeat("0", 64), Size: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := updates.Sign(private, raw)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, updates.SignatureSuffix) {
			_, _ = w.Write(signature)
			return
		}
		_, _ = w.Write(raw)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	addresses := map[string]string{"public.example.com": "93.184.215.14", "inside.example.com": "10.0.0.7", "here.example.com": "127.0.0.1"}
	network := mcp.Network{
		TLS: &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12},
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(addresses[name])}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	}
	source := func(name string) updates.Source {
		return updates.Source{URL: "https://" + name + "/m.json", Keys: []ed25519.PublicKey{public}}
	}
	open := func(from updates.Source) *host.Host {
		h, err := host.Open(t.Context(), host.Config{Places: host.PlacesIn(t.TempDir()), Version: "1.0.0", Home: t.TempDir(), Environ: []string{}, Network: network, Updates: from})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close(context.WithoutCancel(t.Context())) })
		return h
	}

	h := open(source("public.example.com"))
	if h.UpdatesFrom() != "public.example.com" || asked.Load() != 0 {
		t.Errorf("before anybody wants to know, %q was asked %d times", h.UpdatesFrom(), asked.Load())
	}
	if got, err := h.CheckUpdates(t.Context(), "", ""); err != nil || got.State != updates.Newer || got.Version != "99.0.0" || asked.Load() != 2 {
		t.Errorf("it is %+v, %v after %d requests", got, err, asked.Load())
	}
	for _, name := range []string{"inside.example.com", "here.example.com"} {
		if _, err := open(source(name)).CheckUpdates(t.Context(), "", ""); coded.Of(err) != "updates-address-refused" {
			t.Errorf("%s is asked unnamed: %v", name, err)
		}
		if got, err := h.CheckUpdates(t.Context(), "https://"+name+"/m.json", updates.FormatKey(public)); err != nil || got.State != updates.Newer {
			t.Errorf("%s is not asked though it is named: %v", name, err)
		}
	}
	other := updates.FormatKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat("v", ed25519.SeedSize))).Public().(ed25519.PublicKey))
	for _, row := range [][3]string{
		{"https://public.example.com/m.json", other, "updates-signature-invalid"}, {"https://public.example.com/m.json", "", "updates-source-incomplete"}, {"", other, "updates-source-incomplete"},
		{"http://public.example.com/m.json", other, "updates-address-invalid"}, {"https://public.example.com/m.json", "abc", "updates-key-invalid"},
	} {
		if _, err := h.CheckUpdates(t.Context(), row[0], row[1]); coded.Of(err) != row[2] {
			t.Errorf("%s with %q: %v", row[0], row[1], err)
		}
	}
	if _, err := open(updates.Source{}).CheckUpdates(t.Context(), "", ""); coded.Of(err) != "updates-not-configured" {
		t.Errorf("a build that knows no address: %v", err)
	}
}
