package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// registry is an npm registry of the test's own packages, so that they can be
// hostile and no network is needed.
type registry struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	packages map[string]map[string]any // by name: the registry's document
	tarballs map[string][]byte         // by path
	asked    []string                  // paths of requests
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{t: t, packages: map[string]map[string]any{}, tarballs: map[string][]byte{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// installer makes an installer that uses the registry, without a proxy.
func (r *registry) installer() *Installer {
	i := newInstaller(r.t)
	i.config.Registry = r.server.URL + "/"
	i.config.Environ = []string{"PATH=" + os.Getenv("PATH"), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
	return i
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, err := url.PathUnescape(strings.TrimPrefix(request.URL.EscapedPath(), "/"))
	r.asked = append(r.asked, path)
	if data, ok := r.tarballs[path]; ok && err == nil {
		_, _ = w.Write(data)
		return
	}
	document, ok := r.packages[path]
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// pack is one version of a package.
type pack struct {
	name, version string
	manifest      map[string]any    // of package.json, besides name and version
	files         map[string]string // a name ending in "*" is executable
	entries       []tar.Header      // besides the files
	dist          map[string]any    // replaces what the registry says about the tarball
	change        func(data []byte) []byte
}

func (r *registry) publish(p pack) {
	r.t.Helper()
	manifest := map[string]any{"name": p.name, "version": p.version}
	for key, value := range p.manifest {
		manifest[key] = value
	}
	data := p.tarball(r.t, manifest)
	sum, old := sha512.Sum512(data), sha1.Sum(data)
	path := p.name + "/-/" + p.name[strings.LastIndexByte(p.name, '/')+1:] + "-" + p.version + ".tgz"
	dist := map[string]any{
		"tarball": r.server.URL + "/" + path, "shasum": hex.EncodeToString(old[:]),
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	for key, value := range p.dist {
		if value == nil {
			delete(dist, key)
		} else {
			dist[key] = value
		}
	}
	manifest["dist"] = dist
	if scripts, ok := manifest["scripts"].(map[string]any); ok && scripts["postinstall"] != nil {
		manifest["hasInstallScript"] = true
	}
	if p.change != nil {
		data = p.change(data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tarballs[path] = data
	document := r.packages[p.name]
	if document == nil {
		document = map[string]any{"name": p.name, "versions": map[string]any{}, "dist-tags": map[string]any{}}
		r.packages[p.name] = document
	}
	document["versions"].(map[string]any)[p.version] = manifest
	document["dist-tags"].(map[string]any)["latest"] = p.version
}

func (p pack) tarball(t *testing.T, manifest map[string]any) []byte {
	t.Helper()
	packageJSON, err := pretty(manifest)
	must(t, err)
	headers := []tar.Header{{Name: "package/package.json", Linkname: string(packageJSON), Mode: 0o644}}
	names := make([]string, 0, len(p.files))
	for name := range p.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mode := int64(0o644)
		plain, executable := strings.CutSuffix(name, "*")
		if executable {
			mode = 0o755
		}
		headers = append(headers, tar.Header{Name: "package/" + plain, Linkname: p.files[name], Mode: mode})
	}
	headers = append(headers, p.entries...)
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, h := range headers {
		content := ""
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			content, h.Linkname, h.Typeflag = h.Linkname, "", tar.TypeReg
			h.Size = int64(len(content))
		}
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, errors.Join(w.Close(), compressed.Close()))
	return b.Bytes()
}
