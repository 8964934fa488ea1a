package launchers

import (
	"slices"
	"strings"
)

// wrapped returns the command line that a program runs which only changes how.
func wrapped(name string, args []string) ([]string, bool) {
	var valued []string
	switch name {
	case "env":
		return skipAssignments(args, []string{"-u", "--unset", "-C", "--chdir", "-S", "--split-string"})
	case "sudo", "doas":
		return skipAssignments(args, []string{"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D"})
	case "nice", "ionice", "chrt", "taskset":
		valued = []string{"-n", "--adjustment", "-c", "-p"}
	case "timeout", "gtimeout":
		valued = []string{"-s", "--signal", "-k", "--kill-after"}
		return afterFirst(args, valued)
	case "nohup", "exec", "setsid", "command", "time", "stdbuf", "caffeinate", "arch", "unbuffer", "npm-run", "xvfb-run", "dotenv", "doppler", "op", "direnv":
		valued = []string{"-i", "-o", "-e", "-f", "-a"}
	case "cmd":
		return skipSlashes(args)
	case "wsl":
		valued = []string{"-d", "--distribution", "-u", "--user"}
	default:
		return nil, false
	}
	inner := skipOptions(args, valued)
	if slices.Contains([]string{"doppler", "op", "direnv"}, name) {
		if at := slices.Index(args, "--"); at >= 0 {
			inner = args[at+1:]
		}
	}
	return inner, len(inner) > 0
}

// skipOptions drops leading options and their values.
func skipOptions(args, valued []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return args
		case slices.Contains(valued, word):
			args = args[min(1, len(args)):]
		}
	}
	return args
}

// skipAssignments is skipOptions for a program that takes NAME=VALUE before the
// command; env -S holds a whole command line in one word.
func skipAssignments(args, valued []string) ([]string, bool) {
	for i, word := range args {
		if line, ok := splitString(word); ok && line != "" {
			return append(shellWords(line), args[i+1:]...), true
		} else if ok && i+1 < len(args) {
			return append(shellWords(args[i+1]), args[i+2:]...), true
		}
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			break
		}
	}
	args = skipOptions(args, valued)
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.ContainsAny(args[0][:strings.Index(args[0], "=")], "/ ") {
		args = args[1:]
	}
	return args, len(args) > 0
}

// afterFirst drops the options and one operand, such as a time limit.
func afterFirst(args, valued []string) ([]string, bool) {
	args = skipOptions(args, valued)
	if len(args) < 2 {
		return nil, false
	}
	return args[1:], true
}

// skipSlashes returns what follows the options of cmd.exe, whose line may be one word.
func skipSlashes(args []string) ([]string, bool) {
	for len(args) > 0 && strings.HasPrefix(args[0], "/") {
		args = args[1:]
	}
	if len(args) == 1 {
		return shellWords(args[0]), true
	}
	return args, len(args) > 0
}

// splitString takes the command line out of env's -S, which may stand behind other
// letters, or of its long form; "" where the next word is the line.
func splitString(word string) (string, bool) {
	if line, ok := strings.CutPrefix(word, "--split-string"); ok {
		return strings.TrimPrefix(line, "="), true
	}
	letters, ok := strings.CutPrefix(word, "-")
	if !ok {
		return "", false
	}
	return strings.CutPrefix(strings.TrimLeft(letters, "iv0"), "S")
}
