package transfer

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/store"
)

// nameForm is the form of the names that BackupInto gives, in UTC.
const nameForm = "20060102T150405Z"

// removing marks a backup that is being removed. Nothing takes it for a backup.
const removing = ".removed"

// BackupInto makes a backup as Backup does, in a new folder of into that is named by its time. Then it removes the
// oldest other backups of the same store in into, until keep are left with the new one. It leaves everything alone
// that is not a finished backup of this store under such a name. keep must be at least 1.
func BackupInto(ctx context.Context, f Folders, dir, into string, keep int) (m *Manifest, to string, removed []string, err error) {
	to = filepath.Join(into, f.Now().UTC().Format(nameForm))
	if m, err = Backup(ctx, f, dir, to); err != nil {
		return m, to, nil, err
	}
	removed, err = removeOldest(into, to, m.Installation, keep)
	return m, to, removed, err
}

// removeOldest removes the oldest backups of the installation in into, except the newest one, made.
func removeOldest(into, made, installation string, keep int) (removed []string, err error) {
	list, err := os.ReadDir(into)
	if err != nil {
		return nil, err
	}
	type old struct {
		at   string
		made time.Time
	}
	var all []old
	for _, e := range list {
		at := filepath.Join(into, e.Name())
		if name, cut := strings.CutSuffix(e.Name(), unfinished); cut && isTime(name) {
			err = errors.Join(err, dropUnfinished(at))
			continue
		}
		name, ended := strings.CutSuffix(e.Name(), removing)
		if !isTime(name) || !e.IsDir() || at == made {
			continue
		}
		if ended { // a removal was interrupted
			err = errors.Join(err, os.RemoveAll(at))
			continue
		}
		m, reading := ReadManifest(at)
		if reading == nil && m.Installation == installation {
			all = append(all, old{at, m.Made})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Or(a.made.Compare(b.made), strings.Compare(a.at, b.at)) })
	for len(all) > keep-1 && err == nil {
		at := all[0].at
		all = all[1:]
		if err = os.Rename(at, at+removing); err == nil {
			removed = append(removed, at)
			err = os.RemoveAll(at + removing)
		}
	}
	return removed, err
}

func isTime(name string) bool {
	_, err := time.Parse(nameForm, name)
	return err == nil
}

// dropUnfinished removes what a killed backup has left, unless it is under way.
func dropUnfinished(at string) error {
	release, err := claimStaging(at)
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(at), release())
}
