package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/test/pebbletest"
	"github.com/duesday/duesday/internal/test/soaktest"
)

// The crash test runs writers that fight over a few slots, cuts the power at a
// random moment with commits under way, opens what a disk may hold then, and asks:
// is everything there that was acknowledged or seen by a reader, is everything else
// there wholly or not at all, and do indexes and TTL entries agree with the items.
//
// Commit c on slot s at version v raises the slot to v + 1 if it is still at v and
// puts two marks, in both tables. So the marks say what the slot must be.

const (
	crashSlots   = 4
	crashWriters = 6
	crashReaders = 2
)

func crashTables() []store.Table {
	return []store.Table{
		{Name: "slots", PartitionKey: "PK", SortKey: "SK", TTL: "TTL", Indexes: []store.Index{
			{Name: "by-state", PartitionKey: "state", SortKey: "since", Include: []string{"version"}},
			{Name: "all", PartitionKey: "owner", All: true},
		}},
		{Name: "marks", PartitionKey: "id"},
	}
}

// A mark names the commit that raised a slot to a version.
type mark struct {
	slot    int
	version int64
}

func (m mark) slotKey() store.Key { return store.Key{PK: fmt.Sprintf("slot%d", m.slot), SK: "now"} }
func (m mark) pastKey() store.Key {
	return store.Key{PK: fmt.Sprintf("slot%d", m.slot), SK: fmt.Sprintf("past%09d", m.version)}
}
func (m mark) markKey() store.Key { return store.Key{PK: fmt.Sprintf("%d/%d", m.slot, m.version)} }

func (m mark) writes(pad int) []store.Write {
	slots, marks := crashTables()[0], crashTables()[1]
	var now, past, id store.Item
	slots.SetKey(&now, m.slotKey())
	slots.SetKey(&past, m.pastKey())
	marks.SetKey(&id, m.markKey())
	now.Set("version", store.Int(m.version))
	now.Set("state", store.S([]string{"open", "paid"}[m.version%2]))
	now.Set("since", store.S(fmt.Sprintf("%09d", m.version/3)))
	if m.version%3 != 0 {
		now.Set("owner", store.S("me"))
	}
	past.Set("TTL", store.Int(1_900_000_000+m.version))
	past.Set("owner", store.S("me"))
	past.Set("pad", store.B(make([]byte, pad)))
	condition := store.AttributeEquals("version", store.Int(m.version-1))
	if m.version == 1 {
		condition = store.Absent()
	}
	return []store.Write{
		store.Put("slots", now, condition),
		store.Put("slots", past, store.Absent()),
		store.Put("marks", id, store.Absent()),
	}
}

// A witness collects what must survive: the highest version of each slot that was
// acknowledged, shown to a reader, or named by the conflict of another commit.
type witness struct {
	mu       sync.Mutex
	versions [crashSlots]int64
	events   int
	enough   int
	reached  chan struct{}
}

func (w *witness) saw(slot int, version int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[slot] = max(w.versions[slot], version)
	if w.events++; w.events == w.enough {
		close(w.reached)
	}
}

func (w *witness) so() [crashSlots]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.versions
}

// work commits and reads until ctx is done.
func work(ctx context.Context, s *Store, w *witness, seed uint64) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range crashWriters {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			next := w.so()
			for ctx.Err() == nil {
				slot := rng.IntN(crashSlots)
				m := mark{slot, next[slot] + 1}
				err := s.Commit(context.Background(), m.writes(rng.IntN(2000))...)
				switch {
				case err == nil:
					w.saw(slot, m.version)
				case !errors.Is(err, store.ErrConflict):
					return // closed or failed
				default:
					// The slot has moved on: at least the mark's own version exists, and
					// whoever was told so may act on it.
					w.saw(slot, m.version)
				}
				next[slot]++
			}
		})
	}
	for i := range crashReaders {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				slot := n % crashSlots
				it, err := s.Get(ctx, "slots", mark{slot: slot}.slotKey())
				if err == nil {
					w.saw(slot, it.Int("version"))
				}
				for it, err := range s.Query(ctx, store.Query{Table: "slots", Index: "by-state", Partition: "open", Limit: 2,
					Reverse: true}) {
					if err == nil {
						var slot int
						_, _ = fmt.Sscanf(it.Str("PK"), "slot%d", &slot)
						w.saw(slot, it.Int("version"))
					}
				}
			}
		})
	}
	return &wg
}

// audit compares a store that was opened after a crash with what was witnessed.
func audit(ctx context.Context, s *Store, witnessed [crashSlots]int64) error {
	for slot, least := range witnessed {
		version := int64(0)
		it, err := s.Get(ctx, "slots", mark{slot: slot}.slotKey())
		if err == nil {
			version = it.Int("version")
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if version < least {
			return fmt.Errorf("slot %d: version %d was witnessed, %d is there", slot, least, version)
		}
		// Wholly: each commit up to that version with both marks, none beyond.
		for v := int64(1); v <= version+2; v++ {
			m := mark{slot, v}
			_, pastErr := s.Get(ctx, "slots", m.pastKey())
			_, markErr := s.Get(ctx, "marks", m.markKey())
			if there := v <= version; (pastErr == nil) != there || (markErr == nil) != there {
				return fmt.Errorf("slot %d at version %d: parts of commit %d: %v, %v", slot, version, v, pastErr, markErr)
			}
		}
	}
	return checkRows(s)
}

// checkRows compares all rows of the database with those that its base rows ask for.
func checkRows(s *Store) error {
	byID := map[byte]*layout{}
	for _, l := range s.layouts {
		byID[l.id] = l
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	want, got := map[string]string{}, map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		l := byID[k[0]]
		if l == nil {
			continue
		}
		if k[1] != kindBase {
			got[string(k)] = string(it.Value())
			continue
		}
		item, err := l.decodeBase(k[2:], it.Value(), "")
		if err != nil {
			return err
		}
		for _, r := range l.marks(l.KeyOf(item), item) {
			if r.key != nil {
				want[string(r.key)] = string(r.value)
			}
		}
	}
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			return fmt.Errorf("row %x is %x (%v), its item asks for %x", k, g, ok, v)
		}
		delete(got, k)
	}
	for k := range got {
		return fmt.Errorf("row %x belongs to no item", k)
	}
	return it.Error()
}

// crashes runs cycles of work and power cuts, each on what the one before left, and
// returns the first loss.
func crashes(t *testing.T, cycles int, seed uint64, how *pebble.WriteOptions) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := pebbletest.NewCrashDisk()
	w, programme := &witness{}, soaktest.Start(t)
	for cycle := range cycles {
		if !programme.Next() {
			return nil
		}
		if cycle%20 == 0 { // audits read all there is
			disk, w = pebbletest.NewCrashDisk(), &witness{}
		}
		s, err := Open("d/store", Options{Tables: crashTables(), FS: disk, Create: true, tune: small,
			Fatal: func(err error) { t.Errorf("the disk has failed: %v", err) }})
		if err != nil {
			return fmt.Errorf("seed %d cycle %d: %w", seed, cycle, err)
		}
		if err := audit(t.Context(), s, w.versions); err != nil {
			return errors.Join(fmt.Errorf("seed %d cycle %d: %w", seed, cycle, err), s.Close())
		}
		s.sync = how // before any commit

		next := &witness{versions: w.versions, enough: 1 + rng.IntN(150), reached: make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		wg := work(ctx, s, next, rng.Uint64())
		select {
		case <-next.reached:
		case <-ctx.Done():
			t.Error("the writers are stuck")
		}
		w = &witness{versions: next.so()} // before the cut
		after := disk.Crash(vfs.CrashCloneCfg{UnsyncedDataPercent: 25 * rng.IntN(5), RNG: rng})
		cancel()
		wg.Wait()
		if err := s.Close(); err != nil {
			return err
		}
		disk = after
	}
	return nil
}

// TestCrash runs its cycles in shares of random seeds, at the same time.
func TestCrash(t *testing.T) {
	t.Parallel()
	const shares, ordinary, soak = 4, 30, 5000
	cycles := ordinary
	if soaktest.On() {
		cycles = soak
	}
	first := soaktest.Seed(t)
	for seed := first; seed < first+shares; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			if err := crashes(t, cycles, seed, pebble.Sync); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d power cuts; %d are left to DUESDAY_SOAK=1", shares*cycles, shares*(soak-cycles))
}

// The crash test must see the loss when commits are not synced, or it shows nothing.
func TestPlantedNoSyncIsCaught(t *testing.T) {
	t.Parallel()
	if err := crashes(t, 100, 1, pebble.NoSync); err == nil {
		t.Error("100 crashes with unsynced commits, and no loss was found")
	} else {
		t.Logf("found: %v", err)
	}
}
