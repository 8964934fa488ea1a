package plugins

import "slices"

// watch makes the system watch the directories of the place's last look. When
// that would go over the budget, or the system refuses or cannot be relied on,
// the place is polled instead. Directories that are watched already are asked
// for again: one may have been replaced by another of the same name.
func (l *watchLoop) watch(place *watched) {
	wanted := place.last.dirs
	if l.notifier == nil || !place.last.present || !canNotify(place.last.root) {
		l.release(place)
		place.polled = true
		return
	}
	fresh := 0
	for _, dir := range wanted {
		if l.holders[dir] == 0 {
			fresh++
		}
	}
	if len(l.holders)+fresh > l.budget {
		l.log.Info("a place is polled, the budget of watches is spent", "directories", len(wanted))
		l.release(place)
		place.polled = true
		return
	}
	before := place.dirs
	place.dirs = nil
	for i, dir := range wanted {
		if err := l.notifier.Add(dir); err != nil && !isMissing(err) {
			l.log.Info("a place is polled, the system watches no more directories", "error", err)
			place.dirs = slices.Clone(wanted[:i])
			l.hold(place.dirs)
			l.drop(before)
			l.release(place)
			place.polled = true
			return
		}
	}
	place.dirs = slices.Clone(wanted)
	l.hold(place.dirs)
	l.drop(before)
	place.polled = false
}

func (l *watchLoop) release(place *watched) {
	l.drop(place.dirs)
	place.dirs = nil
}

func (l *watchLoop) hold(dirs []string) {
	for _, dir := range dirs {
		l.holders[dir]++
	}
}

// drop ends the watch of directories that no place wants any more.
func (l *watchLoop) drop(dirs []string) {
	for _, dir := range dirs {
		if l.holders[dir]--; l.holders[dir] <= 0 {
			delete(l.holders, dir)
			// An error means that the directory, and its watch, are gone.
			_ = l.notifier.Remove(dir)
		}
	}
}
