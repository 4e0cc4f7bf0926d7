package session

import (
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

// TestLimitMemory checks that the limit is set and undone, unless the environment sets a limit, and
// that it leaves memory for others.
func TestLimitMemory(t *testing.T) {
	env := ""
	p := New(func(string) string { return env }, nil, nil, nil, nil)
	before := debug.SetMemoryLimit(-1)
	check := func(what string, want int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%s: the limit is %d, want %d", what, got, want)
		}
	}
	p.Config.CacheBytes = 512 << 20
	undo := p.LimitMemory()
	check("set", 960<<20)
	undo()
	check("undone", before)
	if memory := memoryOf(os.DirFS("/")); memory > 0 {
		p.Config.CacheBytes = memory
		undo = p.LimitMemory()
		check("too much", memory/100*heapPercent)
		undo()
	}
	env = "1GiB"
	undo = p.LimitMemory()
	check("of the environment", before)
	undo()
}

// TestSpareMemory checks that the growth is set and undone, unless the environment sets one.
func TestSpareMemory(t *testing.T) {
	env := ""
	p := New(func(string) string { return env }, nil, nil, nil, nil)
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for _, want := range []int{sparingGrowth, 100} {
		undo := p.SpareMemory()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%q: the growth is %d %%, want %d %%", env, got, want)
		}
		undo()
		env = "100"
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
