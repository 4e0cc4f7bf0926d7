package socket

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// CheckOwner refuses a file or folder of another user: files made there would become this user's.
// A path without a file is nobody's.
func CheckOwner(path string) error { return checkFile(path, 0, "") }

// Everybody and Group are the mode bits that allow others to write a file.
const (
	Everybody fs.FileMode = 0o002
	Group     fs.FileMode = 0o020
)

// CheckFolder refuses a folder, or a file in it, that another user owns or that others may write by the
// bit. It refuses links in it, except to folders. The path itself may be a link; a path without a folder
// is nobody's. CheckFolder does not look into folders below. The error names the command that mends the
// folder, or all files in it at once.
func CheckFolder(dir string, others fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // chown -R follows no link
	}
	if err := checkFile(dir, others, ""); err != nil {
		return err
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range list {
		path := filepath.Join(dir, entry.Name())
		info, lerr := os.Stat(path)
		switch link := entry.Type()&fs.ModeSymlink != 0; {
		case err != nil:
			return err
		case lerr == nil && info.IsDir():
		case link:
			err = fmt.Errorf("%s is a link, which Duesday does not follow in that folder; replace it with the file itself, or remove it", path)
		case lerr == nil: // else the holder has removed it
			err = checkFile(path, others, dir)
		}
	}
	return err
}

// checkFile checks a file in the folder, or what is at the path by itself if folder is "".
func checkFile(path string, others fs.FileMode, folder string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mended := "'" + strings.ReplaceAll(cmp.Or(folder, path), "'", `'\''`) + "'"
	all := ""
	if folder != "" {
		all = "-R "
	}
	us := os.Geteuid()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != us {
		mend := "; use your own folder, or run this as the owner"
		if private := info.Mode()&0o077 == 0; folder != "" || private && us != 0 { // not /, and root is here by mistake
			mend += fmt.Sprintf(", or run: sudo chown %s%d %s", all, us, mended)
		}
		return fmt.Errorf("%s belongs to uid %d, but this process runs as uid %d%s", path, owner.Uid, us, mend)
	}
	switch {
	case info.Mode()&others == 0:
		return nil
	case others == Group:
		return fmt.Errorf("its group can write %s; run: chmod %sg-w %s", path, all, mended)
	case info.Mode()&fs.ModeSticky != 0: // such as /tmp
		return fmt.Errorf("every user can write %s; use your own folder inside it", path)
	}
	return fmt.Errorf("every user can write %s; run: chmod %so-w %s", path, all, mended)
}

// keep gives the socket's file to its owner alone before it is there. It does so on Linux; elsewhere
// the error is ignored, and Listen does it a moment later.
func keep(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
