package plugins

import (
	"strconv"
	"strings"
)

// show quotes a name of the package's for a sentence: short, with control and
// invisible characters written out.
func show(name string) string {
	const limit = 80
	if len(name) > limit {
		name = strings.ToValidUTF8(name[:limit], "") + "…"
	}
	return strconv.QuoteToGraphic(name)
}
