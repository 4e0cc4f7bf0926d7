package session

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	heapPercent   = 80        // of the memory; the page cache and other processes use the rest
	heapMargin    = 320 << 20 // with the default cache, the process stays below 1 GiB
	sparingGrowth = 25        // percent
)

// LimitMemory sets the garbage collector's memory limit to a quarter more than the store's cache plus
// heapMargin, but to at most heapPercent of this process's memory. undo restores the previous limit.
// GOMEMLIMIT in the environment replaces this limit.
//
// A build without cgo keeps the cache on the heap, which could grow to a multiple of that size if
// GOGC were the only limit: on 10,000,000 subscriptions, a run without the limit used 1.8 GB and took as
// long. The quarter is for the unused ends of the cache's blocks, an eighth of them. The collector works
// harder near the limit, so do not limit work whose memory grows with the store.
func (p *Program) LimitMemory() (undo func()) {
	if p.Env("GOMEMLIMIT") != "" {
		return func() {}
	}
	limit := p.Config.CacheBytes + p.Config.CacheBytes/4 + heapMargin
	if memory := memoryOf(os.DirFS("/")); memory > 0 {
		limit = min(limit, memory/100*heapPercent)
	}
	before := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
}

// SpareMemory makes the garbage collector run whenever the heap has grown by sparingGrowth. It is
// for work that keeps something of every subscription in memory: an import of a million rows used
// 593 MiB instead of 1,036 MiB, and 8 % more CPU. undo restores the previous growth. GOGC in the
// environment replaces this growth.
func (p *Program) SpareMemory() (undo func()) {
	if p.Env("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(sparingGrowth)
	return func() { debug.SetGCPercent(before) }
}

// memoryOf returns the size in bytes of the machine's memory, or of the smallest control group
// around this process. It returns 0 if Linux does not report the size.
func memoryOf(root fs.FS) (least int64) {
	note := func(file, before string, unit int64) {
		text, _ := fs.ReadFile(root, file) // a missing file means the size is unknown
		_, text, _ = bytes.Cut(text, []byte(before))
		number, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n > 0 && n < math.MaxInt64/unit && (least == 0 ||
			n*unit < least) {
			least = n * unit
		}
	}
	note("proc/meminfo", "MemTotal:", 1<<10)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		dir, file := "sys/fs/cgroup", "memory.max"
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		if fields[1] == "memory" { // control groups version 1
			dir, file = dir+"/memory", "memory.limit_in_bytes"
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if note(path.Join(dir, group, file), "", 1); group == "/" {
				break
			}
		}
	}
	return least
}
