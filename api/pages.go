package api

import (
	"io/fs"
	"net/http"
	"path"
)

// contentPolicy lets the pages load their own files and ask their own API, and
// nothing else: no inline script or style, no frame, no other origin.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; frame-src 'none'; frame-ancestors 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"

// Pages serves the interface's files. They are the same for everybody and hold no
// data, so they need no token; every question that they ask does.
func Pages(files fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Clean("/" + r.URL.Path)[1:]
		if name == "" {
			name = "index.html"
		}
		SetPageHeaders(w.Header())
		content, err := fs.ReadFile(files, name)
		if err != nil {
			http.Error(w, "there is nothing at this address", http.StatusNotFound)
			return
		}
		if path.Dir(name) == "assets" { // named by their content
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		}
		w.Header().Set("Content-Type", pageType(name))
		_, _ = w.Write(content)
	})
}

// SetPageHeaders sets what every page of the interface is served with.
func SetPageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// pageType is fixed: a system's own table of types may say anything.
func pageType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".woff2":
		return "font/woff2"
	}
	return "application/octet-stream"
}

// pages puts the interface beside the API: the top, the icon and what was built.
func (s *Server) pages(mux *http.ServeMux, files fs.FS) {
	if files == nil {
		return
	}
	handler := Pages(files)
	for _, place := range []string{"GET /{$}", "GET /icon.svg", "GET /assets/{file}"} {
		mux.Handle(place, handler)
	}
}
