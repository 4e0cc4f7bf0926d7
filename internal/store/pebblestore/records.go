package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// errNoLog: somebody has deleted the logs, unless wasKilled.
var errNoLog = errors.New("all log files are missing")

// checkRecords returns an error if the manifest or the last log was damaged, and errNoLog if every
// log is gone.
//
// Pebble takes the rest of both, from the first chunk that it cannot read, for what a power cut has
// torn, and deletes it. Only in later blocks of a log does it look for chunks that were written
// after a sync of the broken one. No open leaves a store without a log, see failStopFS.Remove.
func checkRecords(files vfs.FS, dir string) error {
	d, err := pebble.Peek(dir, files)
	if err != nil || !d.Exists {
		return err
	}
	if err := checkChunks(files, d.ManifestFilename, false, 0); err != nil {
		return err
	}
	list, err := files.List(dir)
	last, number := "", uint64(0)
	for _, name := range list {
		var n uint64
		if _, err := fmt.Sscanf(name, "%d.log", &n); err == nil && n >= number {
			last, number = name, n
		}
	}
	switch {
	case err != nil:
		return err
	case last != "":
		return checkChunks(files, files.PathJoin(dir, last), true, uint32(number))
	case d.OptionsFilename != "": // written after the first log
		return errNoLog
	}
	return nil
}

// keepsLogs is the first format whose programs keep the old logs until they have opened the store.
const keepsLogs = 4

// wasKilled reports whether an older program was killed as it opened a store that now has no log: it had
// removed the old ones and not made the next. Everything is in tables then, and the manifest is newer than
// the options, which an open writes last.
func wasKilled(path string, o *Options, po pebble.Options) bool {
	d, err := pebble.Peek(path, o.FS)
	if err != nil {
		return false
	}
	var manifest, options int
	_, err = fmt.Sscanf(o.FS.PathBase(d.ManifestFilename)+" "+o.FS.PathBase(d.OptionsFilename), "MANIFEST-%d OPTIONS-%d", &manifest, &options)
	if err != nil || manifest < options {
		return false
	}
	po.FS, po.ReadOnly = unlockedFS{o.FS}, true
	db, err := pebble.Open(path, &po)
	if err != nil {
		return false
	}
	m, err := readMeta(db, false)
	return errors.Join(err, db.Close()) == nil && m.Format < keepsLogs
}

// checkChunks looks, in a file of Pebble's records, for a chunk that cannot be read before one that
// was written after it had been synced: in a log by what the later one says, in a manifest because
// each record is synced before the next.
func checkChunks(files vfs.FS, path string, log bool, number uint32) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const size = 32 << 10
	header, kinds := 7, byte(1) // checksum, length, kind
	if log {
		header, kinds = 19, 9 // number of the log, offset that is synced
	}
	broken, castagnoli := int64(-1), crc32.MakeTable(crc32.Castagnoli)
	for block, b := int64(0), make([]byte, size); ; block += size {
		n, err := io.ReadFull(f, b)
		for at := 0; at+header <= n; {
			c := b[at:n]
			kind, end := c[6]-kinds, header+int(binary.LittleEndian.Uint16(c[4:]))
			ok := kind < 4 && end <= len(c) && (!log || binary.LittleEndian.Uint32(c[7:]) == number)
			if ok {
				sum := crc32.Checksum(c[6:end], castagnoli)
				ok = binary.LittleEndian.Uint32(c) == (sum>>15|sum<<17)+0xa282ead8
			}
			switch {
			case !ok && broken < 0:
				broken = block + int64(at)
			case ok && broken >= 0 && (!log && kind < 2 || log && int64(binary.LittleEndian.Uint64(c[11:])) > broken):
				return fmt.Errorf("%s is damaged at byte %d, before its end", files.PathBase(path), broken)
			}
			if ok {
				at += end
			} else {
				at++
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
