package console

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
)

// shellArguments are the shells that are started, and how: without their start-up
// files, which would add the person's own variables to exactly the connector's.
func shellArguments(name string) (args []string, known bool) {
	switch name {
	case "bash":
		return []string{"--noprofile", "--norc"}, true
	case "zsh":
		return []string{"-f"}, true
	case "fish":
		return []string{"--no-config"}, true
	case "sh", "dash", "ash":
		return nil, true
	case "cmd":
		return []string{"/D"}, runtime.GOOS == "windows"
	case "powershell", "pwsh":
		return []string{"-NoLogo", "-NoProfile"}, runtime.GOOS == "windows"
	}
	return nil, false
}

// nameOf is a shell's name: without its folder, and on Windows without what makes it a
// program.
func nameOf(path string) string {
	name := filepath.Base(path)
	if runtime.GOOS == "windows" {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	return name
}

// findShell takes the person's own shell where it is one that is known and that nobody
// else could have put there, and the system's otherwise.
func findShell(ctx context.Context, parent env.Parent) (env.Executable, []string, error) {
	own, _ := parent.Lookup(shellVariable)
	for _, path := range []string{own, systemShell()} {
		args, known := shellArguments(nameOf(path))
		if !known || !filepath.IsAbs(path) || !trusted(path) {
			continue
		}
		found, err := env.Find(ctx, env.Search{Command: path})
		if ctx.Err() != nil {
			return env.Executable{}, nil, ctx.Err()
		}
		if err == nil && len(found.Interpreters) == 0 {
			return found, args, nil
		}
	}
	return env.Executable{}, nil, &coded.Error{Code: "console-shell-unknown", Sentence: "there is no shell that a console could start",
		Next: "set SHELL to the path of bash, zsh, fish or sh where Sallyport is started"}
}
