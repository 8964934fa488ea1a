package api

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"sallyport/internal/coded"
)

// Limits of spec/local-api.md 7.
const (
	maxHeaderBytes = 64 << 10
	maxBodyBytes   = 8 << 20
)

// guard refuses, before any routing, what only a foreign page or a confused
// program sends (spec/local-api.md 7). It holds for every route, health too.
func guard(port int, next http.Handler) http.Handler {
	hosts := map[string]bool{
		"127.0.0.1:" + strconv.Itoa(port): true,
		"localhost:" + strconv.Itoa(port): true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := refuse(r, hosts); err != nil {
			writeError(w, err)
			return
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(r *http.Request, hosts map[string]bool) error {
	switch {
	case !hosts[strings.ToLower(r.Host)]:
		return coded.New("host-refused", "this address is not served")
	case foreignOrigin(r, hosts):
		return coded.New("origin-refused", "requests from other sites are refused")
	case r.URL.Path == "" || r.URL.Path[0] != '/' || path.Clean(r.URL.Path) != r.URL.Path:
		return coded.New("not-found", "there is nothing at this address")
	case r.ContentLength > maxBodyBytes:
		return coded.New("body-too-large", "the request is larger than 8 MiB")
	case hasBody(r) && !isJSON(r.Header.Get("Content-Type")):
		return coded.New("content-type", "the body must be application/json")
	}
	return nil
}

// foreignOrigin reports whether a browser says that another site sent this.
// Programs that are no browser send neither header.
func foreignOrigin(r *http.Request, hosts map[string]bool) bool {
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || !hosts[strings.ToLower(u.Host)] {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/json" {
		return false
	}
	charset := strings.ToLower(params["charset"])
	return charset == "" || charset == "utf-8"
}
