package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/duesday/duesday/internal/billing/move"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
	"github.com/duesday/duesday/internal/store/pebblestore"
)

// manifestFile makes a folder a backup. It is the last thing to be written.
const manifestFile = "BACKUP.json"

const backupFormat = 1

// unfinished is the end of the name of a folder in which a backup is made.
const unfinished = ".unfinished"

// A Manifest describes the origin of a backup.
type Manifest struct {
	Format       int       `json:"format"`
	Made         time.Time `json:"made"` // UTC; the backup has every commit acknowledged by then
	Installation string    `json:"installation"`
	From         string    `json:"from"` // the folder of the store, absolute, on the machine it was made on
}

// ErrNoBackup means that the folder is not a complete backup.
var ErrNoBackup = errors.New("not a finished backup")

// Folders are the options of backups and restores.
type Folders struct {
	Tables schema.Tables
	Names  []string // see pebblestore.Options
	Now    func() time.Time
	Holder string // this process, as other processes are told if they find the folder in use

	Version string // of Duesday: a backup of a store in use is made by its holder, of the same version
}

// A Damage is one damaged file of a store.
type Damage = pebblestore.Damage

// Check is pebblestore.Check of the store in the folder.
func (f Folders) Check(ctx context.Context, dir string) (list []Damage, files int, err error) {
	return pebblestore.Check(ctx, dir, f.options())
}

func (f Folders) options() pebblestore.Options {
	return pebblestore.Options{Tables: f.Tables.All(), Revision: schema.Revision, Program: f.Version, Names: f.Names,
		Now: f.Now, Holder: f.Holder, CacheBytes: 32 << 20} // for a short check
}

// Backup makes a consistent copy of the embedded store in the folder dir, and puts it into the
// folder to. If the store is in use, its holder makes the copy. The folder to appears only when the
// copy is complete and on disk, and Backup has read every block of it. It returns store.ErrDamaged
// if the store is damaged.
func Backup(ctx context.Context, f Folders, dir, to string) (*Manifest, error) {
	dir, to = filepath.Clean(dir), filepath.Clean(to)
	if is, err := pebblestore.IsStore(dir); err != nil {
		return nil, err
	} else if !is {
		return nil, fmt.Errorf("%w: %s", store.ErrMissing, dir)
	}
	if err := pebblestore.CheckTarget(dir, to); err != nil {
		return nil, err
	}
	m := &Manifest{Format: backupFormat, Made: f.Now().UTC().Truncate(time.Millisecond)}
	var err error
	if m.From, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	staging := to + unfinished
	release, err := claimStaging(staging)
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%s exists because a backup to %s is running", staging, to)
	}
	if err != nil {
		return nil, err
	}
	err = f.fill(ctx, m, dir, filepath.Join(staging, "store"), to)
	return m, errors.Join(err, os.RemoveAll(staging), release())
}

// claimStaging makes and locks the folder of an unfinished backup, without the leftovers of one whose
// process was killed. It returns store.ErrLocked if that backup is under way.
func claimStaging(dir string) (release func() error, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if release, err = pebblestore.LockFolder(dir); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if e.Name() != "store" && e.Name() != "LOCK" {
			err = fmt.Errorf("%w: %s contains %s, which is not from a backup", store.ErrInvalid, dir, e.Name())
		}
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(dir, "store"))
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// checkpoints is how often the copy is made before it is taken to be as damaged as the store. Once
// in 630 kills, that of a store which had just been opened had a manifest that was cut off, and the
// next one was whole.
const checkpoints = 3

// fill makes the copy in the folder at, completes it, and gives it its name.
func (f Folders) fill(ctx context.Context, m *Manifest, dir, at, to string) error {
	var err error
	for range checkpoints {
		if err := errors.Join(os.RemoveAll(at), f.checkpoint(ctx, dir, at)); err != nil {
			return err
		}
		if m.Installation, err = f.installation(ctx, at); !errors.Is(err, store.ErrDamaged) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the backup cannot be opened: %w", err)
	}
	damages, _, err := f.Check(ctx, at)
	if err != nil {
		return err
	}
	if len(damages) > 0 {
		return fmt.Errorf("%w: %s: %s; no backup was made; to find all damage, run: duesday store check", store.ErrDamaged, damages[0].File, damages[0].Detail)
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(at, manifestFile), bytes.NewReader(append(b, '\n'))); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(at, 0o700), syncFolder(at)); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
		return err
	}
	return errors.Join(os.Rename(at, to), syncFolder(filepath.Dir(to)))
}

// checkpoint makes the copy, or has the holder of the store make it.
func (f Folders) checkpoint(ctx context.Context, dir, at string) error {
	s, err := folder.Open(ctx, dir, folder.Options{Options: f.options(), Version: f.Version})
	if err != nil {
		return err
	}
	err = s.Checkpoint(ctx, at)
	switch {
	case err == nil:
		if _, err = os.Stat(at); err != nil {
			err = fmt.Errorf("the process that holds the store wrote the copy to a folder that this process cannot see: %w", err)
		}
	case ctx.Err() != nil:
		err = fmt.Errorf("backup: %w", context.Cause(ctx))
	case errors.Is(err, store.ErrUnknown):
		err = fmt.Errorf("the process that held the store ended before the copy was complete; run the backup again (%w)", err)
	}
	return errors.Join(err, s.Close())
}

func (f Folders) installation(ctx context.Context, dir string) (string, error) {
	s, err := pebblestore.Open(dir, f.options())
	if err != nil {
		return "", err
	}
	st, err := move.Side{Store: s, Tables: f.Tables}.State(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return "", err
	}
	return st.Installation, nil
}

// ReadManifest returns the manifest of the backup in the folder, or ErrNoBackup.
func ReadManifest(dir string) (*Manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is %w: it contains no %s", dir, ErrNoBackup, manifestFile)
	}
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil || m.Installation == "" {
		return nil, fmt.Errorf("%s is %w: its %s is malformed", dir, ErrNoBackup, manifestFile)
	}
	if m.Format > backupFormat {
		return nil, fmt.Errorf("%w: the backup %s has format %d, but this version of Duesday reads formats up to %d; use a newer version",
			store.ErrFormat, dir, m.Format, backupFormat)
	}
	return &m, nil
}

func writeSynced(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
