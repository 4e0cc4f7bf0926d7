package status

import "syscall"

// Disk returns the bytes of the folder's disk: those free for this user, and all.
func Disk(folder string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	err = syscall.Statfs(folder, &s)
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), err
}
