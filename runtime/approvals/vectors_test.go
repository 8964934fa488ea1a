package approvals

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/coded"
)

var update = flag.Bool("update", false, "write the expectations of vectors that have none")

// vectorFiles returns the vectors of one kind; none at all is a failure.
func vectorFiles(t *testing.T, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "spec", "vectors", kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in spec/vectors/%s (%v)", kind, err)
	}
	return files
}

func readVector(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
}

func TestIdentityVectors(t *testing.T) {
	for _, file := range vectorFiles(t, "identity") {
		var vector struct {
			Why      string   `json:"why"`
			Fields   Fields   `json:"fields"`
			Identity Identity `json:"identity"`
		}
		readVector(t, file, &vector)
		got := vector.Fields.Identity()
		if vector.Identity == "" && *update {
			vector.Identity = got
			writeVector(t, file, vector)
		}
		if got != vector.Identity {
			t.Errorf("%s: got %s, want %s", filepath.Base(file), got, vector.Identity)
		}
	}
}

func TestToolVectors(t *testing.T) {
	for _, file := range vectorFiles(t, "tools") {
		var vectors []struct {
			Why  string `json:"why"`
			Tool string `json:"tool"` // the server's own bytes, as text
			Name string `json:"name,omitempty"`
			Pin  Pin    `json:"pin,omitempty"`
			Code string `json:"code,omitempty"`
		}
		readVector(t, file, &vectors)
		for i := range vectors {
			v := &vectors[i]
			name, pin, err := PinTool(json.RawMessage(v.Tool))
			if v.Pin == "" && v.Code == "" && *update {
				v.Pin, v.Code = pin, coded.Of(err)
				if err == nil {
					v.Name = name
				}
			}
			if pin != v.Pin || coded.Of(err) != v.Code || (err == nil && name != v.Name) {
				t.Errorf("%s: %s: got %q %s %v, want %q %s %s", filepath.Base(file), v.Why, name, pin, err, v.Name, v.Pin, v.Code)
			}
		}
		if *update {
			writeVector(t, file, vectors)
		}
	}
}

func writeVector(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
