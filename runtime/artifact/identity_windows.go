package artifact

import "io/fs"

const neverBlock = 0

// identityOf knows neither inode nor change time here; os.SameFile does that
// part where a file is opened. The mode has no permission bits, so that no file
// has counted ones (spec/artifact-digest.md 2.2).
func identityOf(info fs.FileInfo) identity {
	id := identity{size: info.Size(), mtime: info.ModTime().UnixNano()}
	switch kindOfMode(info.Mode()) {
	case KindDir:
		id.mode = typeDir
	case KindFile:
		id.mode = typeFile
	case KindLink:
		id.mode = typeLink
	}
	return id
}
