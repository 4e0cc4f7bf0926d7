//go:build !windows

package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a folder of another user: its files would become this user's.
func checkOwner(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("store %s belongs to the user with uid %d, and this process runs as uid %d: run it as the "+
			"owner", dir, owner.Uid, os.Geteuid())
	}
	return nil
}
