package pebblestore

import (
	"log/slog"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duesday/duesday/internal/store"
)

// Options configure how to open a store.
type Options struct {
	// Tables are the tables of this program. The store remembers every table; the keys of a
	// remembered one must not change.
	Tables []store.Table
	// Revision grows with each change of the indexes or the TTL attribute of a table. Opening a
	// store of an older revision raises it; one of this revision or a newer one must have these.
	Revision int
	// Program is the version of this program. Older ones that refuse the store name it.
	Program string
	// Names are attribute names that the store keeps as numbers. A store keeps its own list, and
	// gets those that it does not have.
	Names []string
	// Now is the clock that expires items; nil is time.Now.
	Now func() time.Time
	// ReadOnly opens a store in a folder that nobody can write, and changes nothing in it. Readers
	// keep writers out, and not each other. Commits return ErrInvalid.
	ReadOnly bool
	// Create makes a store where there is none; without it Open returns ErrMissing.
	Create bool
	// CacheBytes is the memory for blocks and memtables together, a quarter of it memtables;
	// 0 is DefaultCacheBytes. It is allocated as blocks are read and written.
	//
	// With 512 MiB and enough data a process peaked at 0.94 GB; the rest is fragmentation of
	// malloc. Without cgo the cache lies in Go's heap, where the collector doubles it, unless the
	// process sets a memory limit: with 896 MiB a run peaked at 925 MiB.
	CacheBytes int64
	// FS is the file system; nil is the disk.
	FS vfs.FS
	// Logger hears of slow disks and stalled writes; nil is silent.
	Logger *slog.Logger
	// Fatal is called once, after the disk has failed. It must end the process; nil prints the
	// error and exits with code 70. If it returns, as in tests, every later Commit fails and
	// the store must be abandoned.
	Fatal func(error)
	// Holder names the command of this process, for instance "duesday run payments", in the
	// message that other processes get while it holds the store.
	Holder string
	// Socket is the path at which this process serves the store to others, by HolderOf; "" for
	// none. It is on one line.
	Socket string

	// tune changes Pebble's options in tests: memtables small enough to be flushed.
	tune func(*pebble.Options)
}

// DefaultCacheBytes is the memory of a store without CacheBytes.
const DefaultCacheBytes = 512 << 20

const (
	minMemTable = 4 << 20
	maxMemTable = 64 << 20

	maxOpenFiles = 1000
)

// openFiles is the most tables that Pebble has open: a quarter of the files of this process, which
// needs the rest for connections.
func openFiles() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxOpenFiles
	}
	return int(min(maxOpenFiles, uint64(files.Cur)/4))
}

// formatMajorVersion is pinned: a newer Pebble would otherwise silently make stores that an
// older Duesday cannot open.
const formatMajorVersion = pebble.FormatValueSeparation

// pebbleOptions follow measurements of payment runs:
//
//   - Pebble takes memtables out of the block cache, two in the steady state and up to
//     four while writes stall. With 512 MiB of cache and memtables of 256 MiB almost no
//     block stayed, and reads were 39% of the CPU. So a memtable is an eighth.
//   - The defaults (8 MiB cache, 4 MiB memtable) cost 2.8 times at 128 workers. Memtables
//     of 256 MiB cost more CPU than 64.
//   - L0 may grow to 4 sublevels before it is compacted (Pebble counts each twice): fewer, larger
//     compactions.
//   - A base level of 512 MiB balances what is rewritten on the way into it and out of it: with
//     256 MiB, compactions were 31% of the CPU of charges in a book of 10,000,000.
//   - Files are 4 MiB in L0, 8 in the base level and 16 in the bottom one. A charge's rows are spread
//     over the whole table, so a compaction rewrites every file below that it touches; with files of
//     four times this size, a charge cost 1.3 times as much.
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
		LBaseMaxBytes:               512 << 20,
		MaxOpenFiles:                openFiles(),
		BytesPerSync:                1 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 3 },
	}
	po.TargetFileSizes[0] = 4 << 20
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

// BareOptions returns the engine's options for Pebble, for benchmarks against Pebble itself.
func BareOptions(cacheBytes int64) *pebble.Options {
	o := Options{CacheBytes: cacheBytes}.withDefaults()
	return pebbleOptions(&o, o.FS, pebbleLog{o.Logger, newFailure(nil), ""})
}

// Metrics returns the engine's metrics, for benchmarks.
func (s *Store) Metrics() *pebble.Metrics { return s.db.Metrics() }
