package importing

import (
	"errors"
	"fmt"
	"os"

	"github.com/duesday/duesday/internal/book"
)

// A rejectedFile writes FILE.rejected. It creates a temporary file for the first bad row, and
// renames that file once it is complete.
type rejectedFile struct {
	m    *Import
	file *os.File // nil before the first bad row
	rows *book.RejectedWriter
}

func (r *rejectedFile) temporary() string { return r.m.File + ".rejected.tmp" }

func (r *rejectedFile) add(bad *book.Rejection) error {
	if !r.m.SkipBad || bad.Fatal || r.m.DryRun {
		return nil
	}
	if r.file == nil {
		file, err := os.OpenFile(r.temporary(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("write the rejected rows: %w", err)
		}
		r.file, r.rows = file, book.NewRejectedWriter(file, r.m.format)
	}
	return r.rows.Write(bad)
}

// close completes the file, or deletes it if keep is false.
func (r *rejectedFile) close(keep bool) (err error) {
	if r.file == nil {
		return nil
	}
	if keep {
		err = errors.Join(r.rows.Flush(), r.file.Sync())
	}
	err = errors.Join(err, r.file.Close())
	if !keep || err != nil {
		return errors.Join(err, os.Remove(r.temporary()))
	}
	r.m.Sum.Rejected = r.m.File + ".rejected"
	return os.Rename(r.temporary(), r.m.Sum.Rejected)
}
