package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwner refuses a file or folder of another user: files made there would become this user's.
// A path without a file is nobody's.
func CheckOwner(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with uid %d, and this process runs as uid %d: run it as the owner",
			path, owner.Uid, os.Geteuid())
	}
	return nil
}

// keep gives the socket's file to its owner alone before it is there. It does so on Linux; elsewhere
// the error is ignored, and Listen does it a moment later.
func keep(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
