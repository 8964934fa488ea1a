package plugins

import "golang.org/x/sys/unix"

// notifies says whether being told of changes is worth having on this system.
const notifies = true

// canNotify reports whether the system tells of all changes below dir: not where
// another machine, or another program, can change files behind its back.
func canNotify(dir string) bool {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return false
	}
	switch uint32(s.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.FUSE_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC:
		return false
	}
	return true
}
