package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

// DesktopPath is the route that Desktop answers.
const DesktopPath = "/api/desktop-health"

// Service is the name in every health answer.
const Service = "sallyport"

// Reply is the body of an answer, 200 or 503 (spec/local-api.md 4). Nothing else
// is disclosed to whoever asks without a token.
type Reply struct {
	OK       bool   `json:"ok"`
	Service  string `json:"service"`
	Version  string `json:"version"`
	Instance string `json:"instance"`
	TS       int64  `json:"ts"` // milliseconds since 1970, by this machine's clock
	// Problems are the codes that make OK false; absent when OK.
	Problems []Code `json:"problems,omitempty"`
	// Proof answers the nonce in the query; absent without one.
	Proof string `json:"proof,omitempty"`
}

// DesktopConfig is what the answers say. All fields are required.
type DesktopConfig struct {
	Version  string
	Instance string // the id of this start (loopback.NewInstance)
	Port     int    // the port that is bound
	Key      []byte // proves the instance (LoadKey)
	Tracker  *Tracker
}

// Desktop answers GET and HEAD of DesktopPath. It needs no token and touches no
// keyring, plugin or disk: it answers from memory, within 50 ms whatever hangs.
// Host and Origin are checked before it, as before every route.
func Desktop(c DesktopConfig) http.Handler { return desktop(c) }

type desktop DesktopConfig

func (d desktop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method-not-allowed", "only GET and HEAD are answered here")
		return
	}
	nonce, asked, err := nonceOf(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad-nonce", err.Error())
		return
	}
	reply := Reply{
		Service: Service, Version: d.Version, Instance: d.Instance,
		TS: time.Now().UnixMilli(), Problems: d.Tracker.Failing(),
	}
	reply.OK = len(reply.Problems) == 0
	if asked {
		reply.Proof = proof(d.Key, nonce, d.Instance, d.Port)
	}
	status := http.StatusOK
	if !reply.OK {
		status = http.StatusServiceUnavailable
	}
	send(w, status, reply)
}

// nonceOf returns the one nonce of a query, and whether there is one. The
// proof's lines are joined with line feeds, so a nonce has no control character.
func nonceOf(query string) (nonce string, asked bool, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", false, errors.New("the query cannot be read")
	}
	all, asked := values["nonce"]
	if !asked {
		return "", false, nil
	}
	if len(all) != 1 || !validNonce(all[0]) {
		return "", true, errors.New("a nonce is given once and has 16 to 64 characters, none of them a control character")
	}
	return all[0], true, nil
}

func validNonce(nonce string) bool {
	if !utf8.ValidString(nonce) {
		return false
	}
	for _, r := range nonce {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	n := utf8.RuneCountInString(nonce)
	return n >= 16 && n <= 64
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	send(w, status, struct {
		Code    string   `json:"code"`
		Message string   `json:"message"`
		Details struct{} `json:"details"` // as every error of the API has them
	}{Code: code, Message: message})
}

func send(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // nobody is left to tell
}
