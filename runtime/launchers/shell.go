package launchers

import "strings"

// shellScript returns the text that a shell is given on its command line.
func shellScript(name string, args []string) (string, bool) {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "busybox":
	case "pwsh", "powershell":
		return powershellScript(args)
	default:
		return "", false
	}
	for i, word := range args {
		isFlags := strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--")
		if isFlags && strings.Contains(word, "c") && i+1 < len(args) {
			return args[i+1], true
		}
	}
	return "", false
}

func powershellScript(args []string) (string, bool) {
	for i, word := range args {
		option := strings.ToLower(word)
		if (option == "-c" || option == "-command" || option == "/c") && i+1 < len(args) {
			return strings.Join(args[i+1:], " "), true
		}
	}
	return "", false
}

// scriptFetches finds launchers at the start of every simple command of a script.
// It is no shell: quotes are understood, and nothing is expanded.
func scriptFetches(script string, depth int) (fetches []Fetch) {
	commands := shellCommands(script)
	for i, command := range commands {
		words := command.words
		for len(words) > 0 && (isAssignment(words[0]) || isKeyword(words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		fetches = append(fetches, recognise(words, depth)...)
		if isDownloader(programName(words[0])) {
			fetches = append(fetches, piped(programName(words[0]), words, commands[i:])...)
		}
	}
	return fetches
}

// piped is a download that the next command of a pipe runs, or that is kept for a
// later one.
func piped(name string, words []string, rest []simpleCommand) []Fetch {
	f := Fetch{Launcher: name, Pin: Floating}
	for _, word := range words[1:] {
		if strings.Contains(word, "://") {
			f.Package = word
		}
	}
	if len(rest) > 1 {
		return []Fetch{f}
	}
	return nil
}

func isDownloader(name string) bool {
	switch name {
	case "curl", "wget", "iwr", "irm", "invoke-webrequest", "invoke-restmethod", "fetch":
		return true
	}
	return false
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && strings.Trim(strings.ToUpper(name), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func isKeyword(word string) bool {
	switch word {
	case "if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "exec", "&", "iex":
		return true
	}
	return false
}

type simpleCommand struct{ words []string }

// shellWords splits a text as a shell would, without expanding anything.
func shellWords(text string) (words []string) {
	for _, command := range shellCommands(text) {
		words = append(words, command.words...)
	}
	return words
}

// shellCommands splits a script into its simple commands.
func shellCommands(script string) []simpleCommand {
	s := splitter{}
	for i := 0; i < len(script); i++ {
		s.next(script[i])
	}
	s.endCommand()
	return s.commands
}

// splitter goes through a script byte by byte.
type splitter struct {
	commands []simpleCommand
	words    []string
	word     strings.Builder
	inWord   bool
	quote    byte // ' or " while inside
	escaped  bool
}

func (s *splitter) next(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
		s.put(c)
	case s.quote != 0:
		switch {
		case c == s.quote:
			s.quote = 0
		case c == '\\' && s.quote == '"':
			s.escaped = true
		default:
			s.put(c)
		}
	case c == '\\':
		s.escaped = true
		s.inWord = true
	case c == '\'' || c == '"':
		s.quote, s.inWord = c, true
	case c == ' ' || c == '\t' || c == '\r':
		s.endWord()
	case strings.IndexByte(";|&\n()`", c) >= 0:
		s.endCommand()
	default:
		s.put(c)
	}
}

func (s *splitter) put(c byte) {
	s.inWord = true
	s.word.WriteByte(c)
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) endCommand() {
	s.endWord()
	if len(s.words) > 0 {
		s.commands = append(s.commands, simpleCommand{s.words})
	}
	s.words = nil
}
