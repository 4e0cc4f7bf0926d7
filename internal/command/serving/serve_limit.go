package serving

import (
	"bytes"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/duesday/duesday/internal/screen"
)

const (
	mostConnections = 1024
	heapPercent     = 80 // of the memory; the page cache and other processes use the rest
	heapMargin      = 512 << 20
)

// limitFlags holds the flags that limit the resources that unknown callers can use.
type limitFlags struct {
	connections int
	proxies     []string
	trusted     []netip.Prefix // parsed from proxies
}

func (o *limitFlags) add(f *pflag.FlagSet) {
	f.IntVar(&o.connections, "max-connections", mostConnections,
		"maximum `NUMBER` of connections per listener, up to a quarter of the files that the process may open")
	f.StringSliceVar(&o.proxies, "trusted-proxy", nil,
		"`CIDR` of proxies whose X-Forwarded-For names the caller, such as 10.0.0.0/8 (repeatable)")
}

// check validates the flags. If the process may open only a few files, check lowers the default
// number of connections, and rejects a higher number from the user.
func (o *limitFlags) check(f *pflag.FlagSet) error {
	if o.connections < 1 {
		return screen.Usagef("--max-connections must be 1 or more (got %d)", o.connections)
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if most := max(1, int(min(uint64(files.Cur)/4, math.MaxInt32))); o.connections > most {
		if f.Changed("max-connections") {
			return screen.Usagef("--max-connections must be at most %d, a quarter of the %d files that this process may open with ulimit -Hn (got %d)",
				most, files.Cur, o.connections)
		}
		o.connections = most
	}
	for _, text := range o.proxies {
		proxy, err := netip.ParsePrefix(text)
		if ip, plain := netip.ParseAddr(text); plain == nil {
			proxy, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil || proxy.Addr().Is4In6() { // it would never match, because callers' addresses are unmapped
			return screen.Usagef("--trusted-proxy must be an address or a CIDR block, such as 10.0.0.7 or 10.0.0.0/8 (got %q)", text)
		}
		o.trusted = append(o.trusted, proxy)
	}
	return nil
}

// limitMemory sets the garbage collector's memory limit to twice the store's cache plus heapMargin,
// or to heapPercent of this process's memory if that is less. undo restores the previous limit. A
// build without cgo keeps the cache on the heap, which could grow to five times that size if
// serveGCPercent were the only limit.
func (p *program) limitMemory() (undo func()) {
	if p.Env("GOMEMLIMIT") != "" {
		return func() {}
	}
	limit := 2*p.Config.CacheBytes + heapMargin
	if memory := memoryOf(os.DirFS("/")); memory > 0 {
		limit = min(limit, memory/100*heapPercent)
	}
	before := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
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
