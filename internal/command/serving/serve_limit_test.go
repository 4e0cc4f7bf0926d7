package serving

import (
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/duesday/duesday/internal/session"
)

// TestLimitMemory checks that the heap limit is twice the cache plus a margin, unless the
// environment sets a limit.
func TestLimitMemory(t *testing.T) {
	env := ""
	p := &program{session.New(func(string) string { return env }, nil, nil, nil, nil)}
	p.Config.CacheBytes = 64 << 20
	before := debug.SetMemoryLimit(-1)
	undo := p.limitMemory()
	if got := debug.SetMemoryLimit(-1); got > 640<<20 || got <= 0 {
		t.Errorf("the limit is %d", got)
	}
	undo()
	env = "1GiB"
	p.limitMemory()()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit is %d, and was %d", got, before)
	}
}

func TestMemoryOf(t *testing.T) {
	files := func(pairs ...string) fstest.MapFS {
		root := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
		return root
	}
	const info, group = "proc/meminfo", "proc/self/cgroup"
	machine := "MemTotal:        2048 kB\nMemFree:         1 kB\n"
	for name, tt := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"not Linux":   {files(), 0},
		"the machine": {files(info, machine, group, "0::/\n"), 2 << 20},
		"a container": {files(info, machine, group, "0::/\n", "sys/fs/cgroup/memory.max", "1048576\n"), 1 << 20},
		"a service, whose slice has less": {files(info, machine, group, "0::/system.slice/duesday.service\n",
			"sys/fs/cgroup/system.slice/duesday.service/memory.max", "max\n", "sys/fs/cgroup/system.slice/memory.max",
			"524288\n"), 512 << 10},
		"more than there is": {files(info, machine, group, "0::/a\n", "sys/fs/cgroup/a/memory.max", "9999999\n"), 2 << 20},
		"version 1": {files(info, machine, group, "9:cpu:/b\n4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n", "sys/fs/cgroup/memory/memory.limit_in_bytes",
			"9223372036854771712\n"), 4096},
		"nonsense": {files(info, "MemTotal: many kB\n", group, "0:/..\n:\n0::../../..\n"), 0},
	} {
		if got := memoryOf(tt.root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
