package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked means that the ledger's file is open already.
var ErrLocked = errors.New("the file is in use: another process, or another sandbox of this one, has it open")

// openFile opens and locks the file, fills the ledger from it, and leaves it at its end.
func openFile(name string, l *ledger) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := prepare(f, l); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func prepare(f *os.File, l *ledger) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", f.Name(), ErrLocked)
		}
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	// At each open: the process that made the file may have crashed before this.
	if err := syncDir(filepath.Dir(f.Name())); err != nil {
		return err
	}
	good, whole, err := read(f, l)
	if err != nil {
		return err
	}
	return mend(f, good, whole)
}

// read adds the file's lines to the ledger. good is the number of their bytes. whole is false if
// the last line lacks its newline.
//
// A crash tears at most the end of the file, and the lines there were not answered yet. A last line
// without newline does not count if it is unreadable. A readable one counts: it may have been added
// by hand.
func read(f *os.File, l *ledger) (good int64, whole bool, err error) {
	in := bufio.NewReaderSize(f, 1<<20)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return 0, false, err
		}
		if len(text) == 0 {
			return good, true, nil
		}
		bad := l.restore(bytes.TrimSuffix(text, []byte("\n")))
		switch {
		case bad != nil && err == io.EOF:
			return good, true, nil
		case bad != nil:
			return 0, false, fmt.Errorf("%s, line %d: %w", f.Name(), number, bad)
		}
		good += int64(len(text))
		if err == io.EOF {
			return good, false, nil
		}
	}
}

// mend cuts off a torn end, which would spoil the next line.
func mend(f *os.File, good int64, whole bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == good && whole {
		return nil
	}
	if err := f.Truncate(good); err != nil {
		return err
	}
	if !whole {
		if _, err := f.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return f.Sync()
}

// syncDir makes the name of a new file durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
