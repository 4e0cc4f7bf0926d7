package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/duesday/duesday/internal/socket"
)

// ErrLocked means that another process has kept the ledger's file locked for lockPatience, because
// the process is suspended or is an older version that never unlocks the file.
var ErrLocked = errors.New("another process keeps the file locked")

const lockPatience = 10 * time.Second

// openFile opens the ledger's file, or makes it with its folder. It refuses another user's file.
func openFile(name string) (*os.File, error) {
	if err := checkOwner(name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// At each open: the process that made the file may have crashed before this.
	if err := syncDir(filepath.Dir(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkOwner refuses another user's file, and keeps root from making one in another user's folder.
func checkOwner(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || os.Geteuid() != 0 {
		return socket.CheckOwner(file)
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			if err == nil && info.Mode()&fs.ModeSticky != 0 {
				return nil // such as /tmp: everybody's
			}
			return socket.CheckOwner(dir)
		}
	}
}

// lock waits for the file's lock. The kernel gives it back when the process dies.
func lock(f *os.File) error {
	patience, again := time.After(lockPatience), time.NewTicker(500*time.Microsecond)
	defer again.Stop()
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-again.C:
		case <-patience:
			return ErrLocked
		}
	}
}

// unlock also takes the lock from a child that is just being started and has inherited it.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// read adds the lines of in to the ledger. good is the number of their bytes, and lines their number.
// whole is false if the last line lacks its newline.
//
// A crash tears at most the end of the file, and the lines there were not answered yet. A last line
// without newline does not count if it is unreadable. A readable one counts: it may have been added
// by hand.
func read(from io.Reader, l *ledger) (good int64, lines int, whole bool, err error) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return good, lines, false, err
		}
		if len(text) == 0 {
			return good, lines, true, nil
		}
		bad := l.restore(bytes.TrimSuffix(text, []byte("\n")))
		switch {
		case bad != nil && err == io.EOF:
			return good, lines, true, nil
		case bad != nil:
			return good, lines, false, bad
		}
		good += int64(len(text))
		lines++
		if err == io.EOF {
			return good, lines, false, nil
		}
	}
}

// syncDir makes the name of a new file durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// encode returns the records as lines.
func encode(records []record) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // ends each line with a newline
	for i := range records {
		if err := enc.Encode(&records[i]); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
