package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/billing/engine"
	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/billing/numbering"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// Restored is the result of a restore.
type Restored struct {
	Manifest
	Aside string // the new path of the replaced store; "" if there was none
	Meta  billing.Meta
	Known string // last receipt numbers that the replaced store or the backup gave; "" if none
	Held  int    // mails that waited in the backup, and may have been sent since
}

// ErrExists means that the destination already contains a store.
var ErrExists = errors.New("a store already exists")

// Restore copies the backup in the folder from to the folder dir, where nothing may exist yet. With
// replace, it moves an existing store aside and never deletes it. The new folder appears only when
// it is copied, on disk and opened, and when both jobs will look at all dates.
func Restore(ctx context.Context, f Folders, from, dir string, replace bool) (r *Restored, err error) {
	m, err := ReadManifest(from)
	if err != nil {
		return nil, err
	}
	if dir, err = pebblestore.PlaceOf(dir); err != nil {
		return nil, err
	}
	lost := f.lost(ctx, dir)
	release, err := f.claimTarget(from, dir, replace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	staging := dir + pebblestore.Restoring
	unlock, err := claimStaging(staging)
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%s exists because a restore to %s is running", staging, dir)
	}
	if err != nil {
		return nil, err
	}
	r, temp := &Restored{Manifest: *m}, filepath.Join(staging, "store")
	aside := ""
	if is, _ := isReplaceable(dir); is && replace {
		aside = pebblestore.NewFolder(dir+".before-restore-", f.Now())
	}
	if err = os.Mkdir(temp, 0o700); err == nil {
		err = f.copyBackup(ctx, from, temp)
	}
	if err == nil {
		err = f.whole(ctx, from, temp)
	}
	if err == nil {
		err = f.ready(ctx, r, from, temp, aside, lost)
	}
	if err == nil {
		err = r.swap(temp, dir, aside)
	}
	return r, errors.Join(err, os.RemoveAll(staging), unlock())
}

// Interrupted returns the folder in which a restore to the folder dir is running or was interrupted;
// "" if there is none.
func Interrupted(dir string) string {
	real, err := pebblestore.PlaceOf(dir)
	if half := real + pebblestore.Restoring; err == nil && dir != "" {
		if _, err := os.Stat(half); err == nil {
			return half
		}
	}
	return ""
}

// claimTarget refuses a target that is not empty, or locks the store to be moved aside.
func (f Folders) claimTarget(from, dir string, replace bool) (release func() error, err error) {
	is, err := isReplaceable(dir)
	if err != nil {
		return nil, err
	}
	if !is {
		if err := pebblestore.CheckTarget(from, dir); err != nil {
			return nil, err
		}
		return func() error { return nil }, nil
	}
	if !replace {
		return nil, fmt.Errorf("%w at %s; restore to another folder, or move this store aside with --replace", ErrExists, dir)
	}
	if real, err := filepath.EvalSymlinks(from); err != nil || sameFolder(real, dir) {
		return nil, errors.Join(err, fmt.Errorf("%w: %s is the backup itself", store.ErrInvalid, dir))
	}
	return pebblestore.LockFolder(dir)
}

// isReplaceable reports whether a store is in the folder, damaged or not.
func isReplaceable(dir string) (bool, error) {
	is, err := pebblestore.IsStore(dir)
	if errors.Is(err, store.ErrDamaged) {
		return true, nil
	}
	return is, err
}

func sameFolder(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// copyBackup copies every file, without links: a change of one store must not reach the other.
func (f Folders) copyBackup(ctx context.Context, from, to string) error {
	release, err := pebblestore.LockFolder(from)
	switch {
	case err == nil:
		defer func() { _ = release() }() // nothing depends on it: nothing was written
	case !errors.Is(err, fs.ErrPermission): // without write permission there is no holder to exclude
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch e.Name() {
		case manifestFile, "LOCK", "HOLDER", "duesday.sock", "STRIPE.budget": // the last: of earlier versions
			continue
		}
		if e.IsDir() && pebblestore.IsOlderCopy(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%w: %s in %s is not a file", store.ErrInvalid, e.Name(), from)
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return syncFolder(to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(writeSynced(to, in), in.Close())
}

// ready opens the copy, and makes it a restored store.
func (f Folders) ready(ctx context.Context, r *Restored, from, dir, aside string, lost *numbering.Lost) (err error) {
	s, err := pebblestore.Open(dir, f.options())
	if err != nil {
		return fmt.Errorf("the backup cannot be opened: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	st, err := move.Side{Store: s, Tables: f.Tables}.State(ctx)
	if err != nil {
		return fmt.Errorf("the backup: %w", err)
	}
	if st.Installation != r.Installation {
		return fmt.Errorf("%w: the backup contains installation %s, but its manifest names %s", ErrNoBackup, st.Installation, r.Installation)
	}
	e, err := engine.Open(ctx, engine.Options{Store: s, Tables: f.Tables, Now: f.Now, ReadOnly: true})
	if err != nil {
		return err
	}
	if r.Held, err = e.Restored(ctx, r.Made, from, aside); err != nil {
		return err
	}
	if r.Known, err = numbering.Begin(ctx, e.Records, lost); err != nil {
		return err
	}
	r.Meta, err = e.Meta(ctx)
	return err
}

// lost returns what the store in the folder knows about receipt numbers, or nil if it cannot be read.
func (f Folders) lost(ctx context.Context, dir string) *numbering.Lost {
	o := f.options()
	o.ReadOnly = true
	s, err := pebblestore.Open(dir, o)
	if err != nil {
		return nil // there is none, or it is damaged: claimTarget decides
	}
	lost, err := numbering.LostOf(ctx, billing.NewRecords(s, f.Tables, f.Now, nil))
	if errors.Join(err, s.Close()) != nil {
		return nil
	}
	return lost
}

// whole reads every block of the copy. The good items of a damaged backup can be exported.
func (f Folders) whole(ctx context.Context, from, temp string) error {
	damages, _, err := f.Check(ctx, temp)
	if err == nil && len(damages) > 0 {
		err = fmt.Errorf("%w: %s: %s: %s; nothing was restored; use another backup, or export the readable part of this one",
			store.ErrDamaged, from, damages[0].File, damages[0].Detail)
	}
	return err
}

// swap moves the store at dir aside, and the new folder to dir. Killed in between it leaves no store
// at dir, and makes none be made there: see pebblestore.Restoring.
func (r *Restored) swap(temp, dir, aside string) error {
	is, err := isReplaceable(dir)
	switch {
	case err != nil:
		return err
	case is && aside == "": // somebody has made it meanwhile
		return fmt.Errorf("%w at %s", ErrExists, dir)
	}
	if is {
		err = os.Rename(dir, aside)
	} else if err, aside = os.Remove(dir), ""; errors.Is(err, fs.ErrNotExist) {
		err = nil // nor is there an empty folder
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		if is {
			err = errors.Join(err, os.Rename(aside, dir))
		}
		return err
	}
	r.Aside = aside
	return syncFolder(filepath.Dir(dir))
}
