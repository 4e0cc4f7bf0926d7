package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// Options say how to open a store.
type Options struct {
	// Tables are the tables this program uses. The store remembers every table it has
	// ever been opened with; a remembered declaration must not change.
	Tables []store.Table
	// Names are attribute names that are stored as their place in this list, so they
	// are only ever appended. It must agree with the store's as far as both go.
	Names []string
	// Now is the clock that expires items; nil is time.Now.
	Now func() time.Time
	// Create makes a store where there is none; without it Open returns ErrMissing.
	Create bool
	// CacheBytes is the memory for blocks and memtables together, of which a quarter
	// is memtables; 0 is DefaultCacheBytes. It is taken as blocks are read and written.
	//
	// With 512 MiB and data enough to fill it a process peaked at 0.94 GB, the rest
	// being what malloc leaves between blocks. Without cgo the cache lies in Go's heap,
	// where the collector doubles it: set a memory limit (GOMEMLIMIT; with 850 MiB the
	// peak was 0.87 GB).
	CacheBytes int64
	// FS is the file system; nil is the disk.
	FS vfs.FS
	// Logger hears of slow disks and stalled writes; nil is silent.
	Logger *slog.Logger
	// Fatal is called once when the disk has failed and nothing more may be promised.
	// It must end the process; nil prints the error and exits with code 70. Should it
	// return, as in tests, every later Commit fails and the store must be abandoned.
	Fatal func(error)
	// Holder says what this process is doing, for the message that others get while
	// it holds the store, for instance "duesday run payments".
	Holder string

	// tune changes Pebble's options in tests: memtables small enough to be flushed.
	tune func(*pebble.Options)
}

// DefaultCacheBytes is the memory of a store that was not told an amount.
const DefaultCacheBytes = 512 << 20

const (
	minMemTable = 4 << 20
	maxMemTable = 64 << 20

	maxOpenFiles = 1000
)

// formatMajorVersion is pinned, so that a newer Pebble does not silently make stores
// that an older Duesday cannot open.
const formatMajorVersion = pebble.FormatValueSeparation

// pebbleOptions is what measurements of payment runs have taught:
//
//   - Pebble takes memtables out of the block cache, two in the steady state and up to
//     four while writes stall. With 512 MiB of cache and memtables of 256 MiB almost no
//     block stayed, and reads were 39% of the CPU. So a memtable is an eighth.
//   - The defaults (8 MiB cache, 4 MiB memtable) cost 2.8 times at 128 workers. Memtables
//     of 256 MiB cost more CPU than 64.
//   - L0 may grow to 8 sublevels before it is compacted: fewer, larger compactions.
//   - Only the bottom level is compressed: the others are rewritten soon.
func pebbleOptions(o *Options, fs vfs.FS, log pebble.Logger) *pebble.Options {
	po := &pebble.Options{
		FS:                          fs,
		Logger:                      log,
		FormatMajorVersion:          formatMajorVersion,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                uint64(min(max(o.CacheBytes/8, minMemTable), maxMemTable)),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       48,
		LBaseMaxBytes:               256 << 20,
		MaxOpenFiles:                maxOpenFiles,
		BytesPerSync:                1 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 3 },
	}
	po.TargetFileSizes[0] = 16 << 20
	for i := range po.Levels {
		l := &po.Levels[i]
		l.BlockSize = 16 << 10
		l.FilterPolicy = bloom.FilterPolicy(10)
		profile := block.NoCompression
		if i == len(po.Levels)-1 {
			profile = block.FastestCompression
		}
		l.Compression = func() *block.CompressionProfile { return profile }
	}
	if o.tune != nil {
		o.tune(po)
	}
	return po
}

// BareOptions returns the options that the engine gives Pebble, for a benchmark that
// measures against Pebble itself.
func BareOptions(cacheBytes int64) *pebble.Options {
	o := Options{CacheBytes: cacheBytes}.withDefaults()
	return pebbleOptions(&o, o.FS, pebbleLog{o.Logger, newFailure(nil)})
}

// WaitIdle waits until Pebble neither flushes nor compacts, or the time is over. Only
// benchmarks need it: a figure taken while an import is being compacted says little.
func WaitIdle(db *pebble.DB, most time.Duration) {
	for end, quiet := time.Now().Add(most), 0; quiet < 5 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if m := db.Metrics(); m.Compact.NumInProgress == 0 && m.Flush.NumInProgress == 0 {
			quiet++
		} else {
			quiet = 0
		}
	}
}

// WaitIdle waits until the store neither flushes nor compacts, or the time is over.
func (s *Store) WaitIdle(most time.Duration) { WaitIdle(s.db, most) }
