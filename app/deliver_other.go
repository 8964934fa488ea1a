//go:build !linux

package app

import "net/http"

// firstPageType: Wails adds its scripts, which on macOS also switch the webview's own
// menu off.
const firstPageType = "text/html; charset=utf-8"

// deliver writes a whole answer. The webviews of these systems take it from memory:
// there is no pipe that a child could inherit.
func deliver(w http.ResponseWriter, status int, body []byte) {
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
