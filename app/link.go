package app

import (
	"regexp"
	"strings"
)

// Scheme is what Sallyport's addresses begin with.
const Scheme = "sallyport://"

// reviewLink is what leads somewhere: a question, or the list of them. Whoever can start a
// program can send one, and pages of the web may ask to: it answers nothing.
var reviewLink = regexp.MustCompile(`^sallyport://review(/d-[a-z2-7]{16})?/?$`)

// IsLink reports whether a command line is one address of Sallyport's and nothing else.
func IsLink(args []string) bool {
	return len(args) == 1 && strings.HasPrefix(args[0], Scheme)
}

// page returns the place in the pages that a link leads to. Of any other text there is
// none: the window is shown and stays where it is.
func page(link string) (hash string, ok bool) {
	match := reviewLink.FindStringSubmatch(link)
	if match == nil {
		return "", false
	}
	return "#/review" + match[1], true
}
