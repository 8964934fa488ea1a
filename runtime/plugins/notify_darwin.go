package plugins

// notifies says whether being told of changes is worth having on this system.
// kqueue opens every file it watches, so everything is polled.
const notifies = false

// canNotify reports whether the system tells of all changes below dir.
func canNotify(string) bool { return false }
