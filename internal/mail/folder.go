package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/duesday/duesday/internal/outbox"
)

// A Folder delivers every effect as one .eml file in a folder of the effect's day, such as 2026-11-22
// in UTC. It is safe for concurrent use, by several processes too.
type Folder struct {
	dir   string
	write *Writer

	mu      sync.Mutex
	next    map[string]*flush // guarded by mu: by day, what the next fsync of its folder will cover
	swept   map[string]bool   // guarded by mu: days without the leftovers of killed processes
	syncing sync.Mutex        // held during that fsync
}

var _ outbox.Deliverer = (*Folder)(nil)

// A flush is one fsync of the folder, shared by several deliveries.
type flush struct {
	done chan struct{} // closed when err is set
	err  error
}

// NewFolder returns the folder at dir. The first delivery creates it, accessible only to its owner.
func NewFolder(dir string, w *Writer) (*Folder, error) {
	if dir == "" {
		return nil, errors.New("mail folder: the path must not be empty")
	}
	return &Folder{dir: filepath.Clean(dir), write: w, next: map[string]*flush{}, swept: map[string]bool{}}, nil
}

// Deliver implements outbox.Deliverer. When it returns nil, the whole file survives a power cut. A
// reader never sees an incomplete file under its name. A repeated delivery replaces the file. A
// killed process can leave a hidden .tmp file. A later process removes .tmp files that are more than
// an hour old when it first delivers into the day's folder.
func (f *Folder) Deliver(ctx context.Context, e outbox.Effect) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	message, err := f.write.Message(e)
	if err != nil {
		return err
	}
	day := e.Created.UTC().Format(time.DateOnly) // not today: a repetition replaces the file
	root, err := f.open(day)
	if err != nil {
		return fmt.Errorf("mail folder: %w", err)
	}
	defer root.Close() // an error loses nothing: the file has been synced and closed
	if err = replace(root, name(e)+".eml", message.Bytes); err == nil {
		f.sweep(root, day, name(e)+".eml")
		err = f.flush(day)
	}
	if err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	outbox.Answer(ctx, "written to "+day+"/"+name(e)+".eml")
	return nil
}

// open opens the day's folder for each message again: a person may empty, move or delete it.
func (f *Folder) open(day string) (*os.Root, error) {
	dir := filepath.Join(f.dir, day)
	root, err := os.OpenRoot(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// makeDir makes the folder and its missing parents, durably.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	parent := filepath.Dir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// replace writes the file beside its name, syncs it and renames it.
func replace(root *os.Root, name string, content []byte) (err error) {
	temporary := "." + name + "." + rand.Text() + ".tmp"
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			root.Remove(temporary) // the first error is returned
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// flush makes all earlier renames durable. Deliveries that arrive during one fsync share the next.
func (f *Folder) flush(day string) error {
	f.mu.Lock()
	mine := f.next[day]
	if mine != nil {
		f.mu.Unlock()
		<-mine.done
		return mine.err
	}
	mine = &flush{done: make(chan struct{})}
	f.next[day] = mine
	f.mu.Unlock()

	f.syncing.Lock()
	f.mu.Lock()
	delete(f.next, day) // a later delivery may have renamed too late for this fsync
	f.mu.Unlock()
	mine.err = syncDir(filepath.Join(f.dir, day))
	f.syncing.Unlock()
	close(mine.done)
	return mine.err
}

// leftover is the age of a temporary file that nobody writes any more.
const leftover = time.Hour

// sweep removes the temporary files of killed processes from the day's folder, once. By the clock of
// the file system, the file written last is of now. A failure leaves them to the next process.
func (f *Folder) sweep(root *os.Root, day, last string) {
	f.mu.Lock()
	swept := f.swept[day]
	f.swept[day] = true
	f.mu.Unlock()
	if swept {
		return
	}
	now, err := root.Stat(last)
	if err != nil {
		return
	}
	list, _ := fs.Glob(root.FS(), ".*.tmp")
	for _, name := range list {
		if info, err := root.Lstat(name); err == nil && now.ModTime().Sub(info.ModTime()) > leftover {
			_ = root.Remove(name) // it is in nobody's way
		}
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
