package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"sallyport/internal/coded"
)

// fromElsewhere is what to do about an archive that nobody here can mend.
const fromElsewhere = "pack it again, or get it from a place that you trust"

func traversal(name string) error {
	return at(name, &coded.Error{Code: "entry-traversal", Sentence: "an entry would be written outside the folder", Next: fromElsewhere})
}

func absolute(name string) error {
	return at(name, &coded.Error{Code: "entry-absolute", Sentence: "an entry has an absolute path", Next: fromElsewhere})
}

func backslash(name string) error {
	return at(name, &coded.Error{Code: "entry-backslash", Sentence: "an entry's name holds a backslash", Next: "pack it again with / between the names"})
}

func badName(name string) error {
	return at(name, &coded.Error{Code: "entry-name-invalid", Sentence: "an entry's name is empty, not UTF-8 or holds control characters", Next: fromElsewhere})
}

func notOnWindows(name string) error {
	return at(name, &coded.Error{Code: CodeNotOnWindows, Sentence: "Windows cannot have a file with this name", Next: fromElsewhere})
}

func tooLong(name string) error {
	return at(name, &coded.Error{Code: "entry-name-too-long", Sentence: "an entry's path is longer or deeper than the limit", Next: fromElsewhere})
}

func duplicate(name string) error {
	return at(name, &coded.Error{Code: "entry-duplicate", Sentence: "two entries have the same name", Next: fromElsewhere})
}

func collision(name string) error {
	return at(name, &coded.Error{Code: "entry-collision", Next: "rename one of them",
		Sentence: "two entries have names that are equal but for letter case or Unicode form, so that some systems would lose one"})
}

func link(name string) error {
	return at(name, &coded.Error{Code: "entry-link", Sentence: "an entry is a link", Next: "pack it again without links"})
}

func special(name string) error {
	return at(name, &coded.Error{Code: "entry-special", Sentence: "an entry is neither a file nor a folder", Next: fromElsewhere})
}

func encrypted(name string) error {
	return at(name, &coded.Error{Code: "entry-encrypted", Sentence: "an entry is encrypted", Next: "pack it again without a password"})
}

func method(name string) error {
	return at(name, &coded.Error{Code: "entry-method-unsupported", Sentence: "an entry is packed in a way that is not supported", Next: "pack it again as an ordinary zip"})
}

func overlap(name string) error {
	return at(name, &coded.Error{Code: "entries-overlap", Sentence: "two entries share the same bytes of the archive", Next: fromElsewhere})
}

func damaged(name, what string) error {
	return at(name, &coded.Error{Code: "archive-damaged", Sentence: "the archive is damaged or made to deceive: " + what, Next: fromElsewhere})
}

func tooMany(limit int) error {
	return &coded.Error{Code: "too-many-entries", Sentence: fmt.Sprintf("there are more than %d entries", limit), Next: "remove what the bundle does not need"}
}

func fileTooLarge(name string, limit int64) error {
	return at(name, &coded.Error{Code: "file-too-large", Sentence: "a file has more than " + size(limit), Next: "remove what the bundle does not need"})
}

func tooLarge(limit int64) error {
	return &coded.Error{Code: "tree-too-large", Sentence: "the files have more than " + size(limit), Next: "remove what the bundle does not need"}
}

func bomb(name string, ratio int64) error {
	return at(name, &coded.Error{Code: "archive-ratio", Sentence: fmt.Sprintf("it inflates to more than %d times its size", ratio), Next: fromElsewhere})
}

// size writes a limit for people.
func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// at names the entry, in a form that can always be shown.
func at(name string, e *coded.Error) error {
	e.Path = printable(name)
	return e
}

func printable(name string) string {
	const longest = 200
	if len(name) > longest {
		name = name[:longest] + "…"
	}
	quoted := strconv.Quote(name)
	if utf8.ValidString(name) && quoted == `"`+name+`"` {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\\`, `\`)
}

// cannotWrite is our own trouble with the disk, without the folder's path.
func cannotWrite(name string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &coded.Error{Code: "disk-full", Sentence: "the disk is full", Next: "free some space, then try again", Err: err}
	}
	var pathError *fs.PathError
	var linkError *os.LinkError
	switch {
	case errors.As(err, &pathError):
		err = pathError.Err
	case errors.As(err, &linkError):
		err = linkError.Err
	}
	return fmt.Errorf("cannot write %q: %w", name, err)
}

// cannotRead is our own trouble with the archive's file, without its path.
func cannotRead(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("cannot read the archive: %w", err)
}
