package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// CheckOwner refuses a file or folder of another user: files made there would become this user's.
// A path without a file is nobody's.
func CheckOwner(path string) error { return checkFile(path, 0) }

// Everybody and Group are the bits of a file's mode by which others may write it.
const (
	Everybody fs.FileMode = 0o002
	Group     fs.FileMode = 0o020
)

// CheckFolder refuses a folder, or a file in it, that another user owns or that others may write by the
// bit. It refuses links in it, except to folders. The path itself may be a link; a path without a folder
// is nobody's. CheckFolder does not look into folders below. The error names the command that mends it.
func CheckFolder(dir string, others fs.FileMode) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = checkFile(dir, others)
	}
	for _, entry := range list {
		path := filepath.Join(dir, entry.Name())
		info, lerr := os.Stat(path)
		switch link := entry.Type()&fs.ModeSymlink != 0; {
		case err != nil:
			return err
		case lerr == nil && info.IsDir():
		case link:
			err = fmt.Errorf("%s is a link, and none in that folder is followed: put the file itself there, or remove the link", path)
		case lerr == nil: // else the holder has removed it
			err = checkFile(path, others)
		}
	}
	return err
}

func checkFile(path string, others fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		mend := ""
		if os.Geteuid() != 0 { // root has its own by mistake
			mend = fmt.Sprintf(", or give it to this user: sudo chown %d '%s'", os.Geteuid(), path)
		}
		return fmt.Errorf("%s belongs to the user with uid %d, and this process runs as uid %d: run it as the owner%s",
			path, owner.Uid, os.Geteuid(), mend)
	}
	switch {
	case info.Mode()&others == 0:
		return nil
	case others == Group:
		return fmt.Errorf("its group may write %s: chmod g-w '%s'", path, path)
	}
	return fmt.Errorf("everybody may write %s: chmod o-w '%s'", path, path)
}

// keep gives the socket's file to its owner alone before it is there. It does so on Linux; elsewhere
// the error is ignored, and Listen does it a moment later.
func keep(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
