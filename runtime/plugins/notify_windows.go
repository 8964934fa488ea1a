package plugins

import "strings"

// notifies says whether being told of changes is worth having on this system.
const notifies = true

// canNotify reports whether the system tells of all changes below dir: not on a
// network share.
func canNotify(dir string) bool { return !strings.HasPrefix(dir, `\\`) }
