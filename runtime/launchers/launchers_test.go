package launchers_test

import (
	"strings"
	"testing"

	"sallyport/runtime/launchers"
)

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
const commit = "0123456789abcdef0123456789abcdef01234567"

// Each line is a command line, words separated by spaces with '…' for a space inside a
// word, and what it fetches: "launcher package version pin", or nothing.
func TestRecognise(t *testing.T) {
	for line, want := range map[string]string{
		// cases.md C49
		"npx pkg":                         "npx|pkg||floating",
		"npx -y pkg@latest":               "npx|pkg|latest|floating",
		"npx -y pkg@^2":                   "npx|pkg|^2|floating",
		"npx -y pkg@1.2.3":                "npx|pkg|1.2.3|exact",
		"npx --yes @scope/pkg@1.2.3 /dir": "npx|@scope/pkg|1.2.3|exact",
		"npx @scope/pkg":                  "npx|@scope/pkg||floating",
		"uvx pkg":                         "uvx|pkg||floating",
		"docker run img:latest":           "docker run|img|latest|floating",
		"node server.js":                  "",
		"python3 -m server":               "",

		// npx and its kin
		"npx -p a@1.0.0 -p b c":              "npx|a|1.0.0|exact; npx|b||floating",
		"npx --package=a@1.0.0 -- run":       "npx|a|1.0.0|exact",
		"npx --registry x pkg":               "npx|pkg||floating",
		"npx":                                "npx|||floating",
		"npx git+https://h/x.git#" + commit:  "npx|git+https://h/x.git#" + commit + "||exact",
		"npx https://h/x.tgz#" + commit:      "npx|https://h/x.tgz#" + commit + "||floating",
		"npx github:a/b#" + commit:           "npx|github:a/b#" + commit + "||exact",
		"npx github:a/b":                     "npx|github:a/b||floating",
		"npm exec -- pkg@1.2.3":              "npm exec|pkg|1.2.3|exact",
		"npm x pkg":                          "npm x|pkg||floating",
		"npm --silent exec --package=p -- r": "npm exec|p||floating",
		"npm init thing":                     "npm init|thing||floating",
		"npm run build":                      "",
		"npm start":                          "",
		"pnpm dlx pkg@2.0.0-rc.1":            "pnpm dlx|pkg|2.0.0-rc.1|exact",
		"pnpm run x":                         "",
		"pnpx pkg":                           "pnpx|pkg||floating",
		"yarn dlx -p typescript ts":          "yarn dlx|typescript||floating",
		"bunx --bun pkg":                     "bunx|pkg||floating",
		"bun x pkg@1.0.0":                    "bun x|pkg|1.0.0|exact",
		"bun run server.ts":                  "",
		"corepack pnpm@9.1.0 x":              "corepack|pnpm|9.1.0|exact",

		// Python
		"uvx pkg@1.2.3":                               "uvx|pkg|1.2.3|exact",
		"uvx pkg@latest":                              "uvx|pkg|latest|floating",
		"uvx --from pkg==1.2.3 tool":                  "uvx|pkg|==1.2.3|exact",
		"uvx --from=pkg>=1 --with other==2.0 tool":    "uvx|pkg|>=1|floating; uvx|other|==2.0|exact",
		"uvx --from git+https://h/x@" + commit + " t": "uvx|git+https://h/x@" + commit + "||exact",
		"uvx --from https://h/x.tgz@" + commit + " t": "uvx|https://h/x.tgz@" + commit + "||floating",
		"uvx --python 3.12 pkg":                       "uvx|pkg||floating",
		"uv tool run pkg":                             "uv tool run|pkg||floating",
		"uv run server.py":                            "uv run|||floating",
		"uv run --with mcp==1.2.0 server.py":          "uv run|mcp|==1.2.0|exact",
		"uv --directory /x run server":                "uv run|||floating",
		"uv run --offline server.py":                  "",
		"uv pip list":                                 "",
		"pipx run pkg":                                "pipx run|pkg||floating",
		"pipx run --spec pkg==1.0 tool":               "pipx run|pkg|==1.0|exact",
		"pipx list":                                   "",

		// containers
		"docker run -i --rm img":                           "docker run|img||floating",
		"docker run -i --rm -e TOKEN ghcr.io/a/b:1.2.3":    "docker run|ghcr.io/a/b|1.2.3|exact",
		"docker run --env=A=1 host:5000/img":               "docker run|host:5000/img||floating",
		"podman run --rm img@sha256:" + hash:               "podman run|img|sha256:" + hash + "|digest",
		"docker run img@sha256:short":                      "docker run|img|sha256:short|floating",
		"docker container run img":                         "docker run|img||floating",
		"docker --context x run img":                       "docker run|img||floating",
		"docker compose run x":                             "docker compose|||floating",
		"docker exec -i running server":                    "",
		"docker run --mount type=bind,src=/a,dst=/b img:2": "docker run|img|2|floating",

		// others
		"deno run -A npm:pkg@1.0.0":           "deno run|npm:pkg|1.0.0|exact",
		"deno run https://h/x.ts":             "deno run|https://h/x.ts||floating",
		"deno run -A jsr:@a/b":                "deno run|jsr:@a/b||floating",
		"deno run local.ts":                   "",
		"deno run --cached-only npm:pkg":      "",
		"go run example.com/x@v1.2.3":         "go run|example.com/x|v1.2.3|exact",
		"go run example.com/x@latest":         "go run|example.com/x|latest|floating",
		"go run ./cmd/x":                      "",
		"nix run nixpkgs#x":                   "nix run|nixpkgs#x||floating",
		"nix run github:a/b/" + commit + "#x": "nix run|github:a/b/" + commit + "#x||exact",
		"dnx Pkg@1.2.3 --yes":                 "dnx|Pkg|1.2.3|exact",
		"dotnet dnx Pkg --version 1.2.3":      "dotnet dnx|Pkg|1.2.3|exact",
		"dotnet server.dll":                   "",
		"jbang org.x:y:1.2.3":                 "jbang|org.x:y|1.2.3|exact",
		"mise exec node@22.1.0 -- npx pkg":    "mise exec|node|22.1.0|exact; npx|pkg||floating",
		"cargo run --release":                 "cargo run|||floating",
		"cargo run --frozen":                  "",

		// through wrappers, paths, shells and other systems' names
		"/opt/homebrew/bin/npx pkg":              "npx|pkg||floating",
		`C:\Program…Files\nodejs\npx.cmd -y pkg`: "npx|pkg||floating",
		"NPX.CMD pkg":                                          "npx|pkg||floating",
		"env -u X A=1 npx pkg":                                 "npx|pkg||floating",
		"/usr/bin/env -S npx…-y…pkg":                           "npx|pkg||floating",
		"env -iS npx…-y…pkg":                                   "npx|pkg||floating",
		"env --split-string=npx…-y…pkg":                        "npx|pkg||floating",
		"nice nice nice nice nice nice nice nice nice npx pkg": "nice|||floating",
		"env npx pkg":                                          "npx|pkg||floating",
		"sudo -u me npx pkg":                                   "npx|pkg||floating",
		"timeout -k 5 30 uvx pkg":                              "uvx|pkg||floating",
		"nice -n 5 nohup npx pkg":                              "npx|pkg||floating",
		"cmd /c npx -y pkg":                                    "npx|pkg||floating",
		"cmd.exe /d /s /c npx…-y…pkg@1.0.0":                    "npx|pkg|1.0.0|exact",
		"sh -c npx…pkg":                                        "npx|pkg||floating",
		"bash -lc cd…/x…&&…exec…npx…-y…pkg":                    "npx|pkg||floating",
		"bash -c A=1…npx…'pkg'":                                "npx|pkg||floating",
		`sh -c "npx"…pkg|tee…log`:                              "npx|pkg||floating",
		"sh -c if…true;…then…uvx…pkg;…fi":                      "uvx|pkg||floating",
		"sh -c sh…-c…'npx…pkg'":                                "npx|pkg||floating",
		"sh -c curl…-fsSL…https://h/i.sh…|…sh":                 "curl|https://h/i.sh||floating",
		"sh -c echo…npx":                                       "",
		"bash script.sh":                                       "",
		"powershell -Command npx…pkg":                          "npx|pkg||floating",
		"pwsh -NoProfile -c irm…https://h/x…|…iex":             "irm|https://h/x||floating",
		"doppler run -- npx pkg":                               "npx|pkg||floating",
		"":                                                     "",
	} {
		var words []string
		for _, word := range strings.Fields(line) {
			words = append(words, strings.ReplaceAll(word, "…", " "))
		}
		if len(words) == 0 {
			words = []string{""}
		}
		var got []string
		for _, f := range launchers.Recognise(words[0], words[1:]) {
			got = append(got, strings.Join([]string{f.Launcher, f.Package, f.Version, string(f.Pin)}, "|"))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s\n got %s\nwant %s", line, strings.Join(got, "; "), want)
		}
	}
}

func TestAFetchAsItIsTyped(t *testing.T) {
	for line, want := range map[string]string{
		"npx pkg@1.2.3":               "npx pkg@1.2.3",
		"uvx --from pkg==1.2.3 t":     "uvx pkg==1.2.3",
		"docker run a/b:2":            "docker run a/b:2",
		"docker run a@sha256:" + hash: "docker run a@sha256:" + hash,
		"go run example.com/x@v1.2.3": "go run example.com/x@v1.2.3",
		"uv run x.py":                 "uv run",
		"pipx run --spec a==1.0 b":    "pipx run a==1.0",
		"deno run npm:pkg@1.0.0":      "deno run npm:pkg@1.0.0",
	} {
		words := strings.Fields(line)
		if got := launchers.Recognise(words[0], words[1:])[0].String(); got != want {
			t.Errorf("%s reads %q, want %q", line, got, want)
		}
	}
}

// Whatever the words are, it ends, and says nothing that was not there.
func FuzzRecognise(f *testing.F) {
	f.Add("sh", "-c\x00npx -y 'pkg'")
	f.Add("env", "-S\x00uvx a\x00b")
	f.Add("docker", "run\x00-e\x00A\x00img")
	f.Add("cmd", "/c\x00cmd /c cmd /c npx x")
	f.Fuzz(func(t *testing.T, command, joined string) {
		for _, fetch := range launchers.Recognise(command, strings.Split(joined, "\x00")) {
			if fetch.Pin == "" || fetch.Launcher == "" {
				t.Errorf("%q is not told whole", fetch)
			}
			_ = fetch.String()
		}
	})
}
