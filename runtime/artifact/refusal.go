package artifact

import (
	"strings"
	"unicode/utf8"

	"sallyport/internal/coded"
)

// Codes of spec/artifact-digest.md 5, and of the snapshots built on it.
const (
	CodeNotADirectory   = "not-a-directory"
	CodeSpecialFile     = "special-file"
	CodeSymlinkAbsolute = "symlink-absolute"
	CodeSymlinkEscape   = "symlink-escape"
	CodeSymlinkDangling = "symlink-dangling"
	CodeSymlinkCycle    = "symlink-cycle"
	CodePathEncoding    = "path-encoding"
	CodePathCollision   = "path-collision"
	CodePathTooLong     = "path-too-long"
	CodeTooManyEntries  = "too-many-entries"
	CodeFileTooLarge    = "file-too-large"
	CodeTreeTooLarge    = "tree-too-large"
	CodeUnreadable      = "unreadable"
	CodeChanged         = "changed-while-reading"

	// CodeCaseCollision is a warning, never a refusal.
	CodeCaseCollision = "case-collision"

	CodeChangedSinceAsked = "changed-since-asked"
	CodeSnapshotDamaged   = "snapshot-damaged"
	CodeSnapshotMissing   = "snapshot-missing"
)

// refuse returns the refusal for a code of the contract at a path relative to
// the root. The path is made printable as UTF-8; cause may be nil.
func refuse(code, path string, cause error) *coded.Error {
	sentence, next := wording(code)
	return &coded.Error{Code: code, Sentence: sentence, Next: next, Path: escapeInvalid(path), Err: cause}
}

func wording(code string) (sentence, next string) {
	switch code {
	case CodeNotADirectory:
		return "the root is missing or is no directory", "check the folder's name"
	case CodeSpecialFile:
		return "a pipe, socket or device cannot be part of a bundle", "remove it from the folder"
	case CodeSymlinkAbsolute:
		return "a symbolic link has an absolute target", "make it relative, or remove it"
	case CodeSymlinkEscape:
		return "a symbolic link leaves the folder", "point it inside the folder, or remove it"
	case CodeSymlinkDangling:
		return "a symbolic link leads to nothing", "restore its target, or remove it"
	case CodeSymlinkCycle:
		return "a symbolic link leads to itself or to a folder that contains it", "remove it"
	case CodePathEncoding:
		return "a name or link text is not valid UTF-8", "rename it"
	case CodePathCollision:
		return "two entries have the same name in Unicode form NFC", "rename or remove one of them"
	case CodePathTooLong:
		return "a path or link text is longer or deeper than the contract allows", "shorten it"
	case CodeTooManyEntries:
		return "the folder has more entries than the limit", "remove what the bundle does not need"
	case CodeFileTooLarge:
		return "a file is larger than the limit", "remove what the bundle does not need"
	case CodeTreeTooLarge:
		return "the folder holds more bytes than the limit", "remove what the bundle does not need"
	case CodeUnreadable:
		return "an entry cannot be read", "give yourself permission to read it, then try again"
	case CodeChanged:
		return "an entry changed while it was being read", "try again when nothing writes to the folder"
	case CodeChangedSinceAsked:
		return "the folder is no longer what was asked about", "look at what changed and decide again"
	case CodeSnapshotDamaged:
		return "the approved copy was altered and has been discarded", "approve again from the original folder"
	case CodeSnapshotMissing:
		return "there is no approved copy of this digest", "approve again from the original folder"
	}
	return code, ""
}

// escapeInvalid writes bytes that are not UTF-8 as \xNN, so that a refusal can
// always be shown and sent.
func escapeInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteString(`\x`)
			b.WriteByte(digits[s[0]>>4])
			b.WriteByte(digits[s[0]&15])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
