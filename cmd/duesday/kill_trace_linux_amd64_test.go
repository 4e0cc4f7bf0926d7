package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// envKillAt makes the test binary run the product as its child, and kill it before its n-th change of
// a file, or with names:n before the n-th that makes, removes or renames a file. The number of changes
// goes to standard error.
const envKillAt = "DUESDAY_TEST_KILL_AT"

const (
	exitTraced    = 111 // the child was killed
	exitUntraced  = 112 // this system has no ptrace for us
	optExitKill   = 0x100000
	syscallStopAt = syscall.SIGTRAP | 0x80
)

// contentCalls are the system calls that change the content of files or make changes last;
// nameCalls make, remove and rename files.
var (
	contentCalls = []uint64{syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC,
		syscall.SYS_FTRUNCATE, syscall.SYS_FALLOCATE, syscall.SYS_SYNC_FILE_RANGE, 326} // copy_file_range
	nameCalls = []uint64{syscall.SYS_MKDIRAT, syscall.SYS_UNLINKAT, syscall.SYS_RENAMEAT, syscall.SYS_LINKAT,
		syscall.SYS_FCHMODAT, syscall.SYS_OPENAT, 316} // renameat2
)

func init() {
	text, names := strings.CutPrefix(os.Getenv(envKillAt), "names:")
	if n, err := strconv.Atoi(text); err == nil {
		trace(n, names)
	}
}

// changes reports whether the call changes a file; with onlyNames, whether it makes, removes or
// renames one. The registers are those of a thread at the begin or the end of a call: at the begin
// its result is ENOSYS.
func changes(r *syscall.PtraceRegs, onlyNames bool) bool {
	switch {
	case int64(r.Rax) != -int64(syscall.ENOSYS):
		return false
	case r.Orig_rax == syscall.SYS_OPENAT:
		return r.Rdx&syscall.O_CREAT != 0
	case slices.Contains(nameCalls, r.Orig_rax):
		return true
	}
	return !onlyNames && slices.Contains(contentCalls, r.Orig_rax) && (r.Orig_rax != syscall.SYS_WRITE || r.Rdi > 2) // a terminal
}

// trace runs the product with the arguments of this process, and kills it before its n-th change of a
// file, or of a name. It does not return.
func trace(n int, onlyNames bool) {
	runtime.LockOSThread() // the tracer is a thread
	os.Unsetenv(envKillAt)
	c := exec.Command(os.Args[0], os.Args[1:]...)
	c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUntraced)
	}
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.Process.Pid, &status, 0, nil)
	if err == nil {
		err = syscall.PtraceSetOptions(c.Process.Pid, syscall.PTRACE_O_TRACECLONE|syscall.PTRACE_O_TRACESYSGOOD|optExitKill)
	}
	if err == nil {
		err = syscall.PtraceSyscall(c.Process.Pid, 0)
	}
	for done := 0; err == nil; {
		thread, werr := syscall.Wait4(-1, &status, syscall.WALL, nil)
		switch {
		case werr != nil:
			err = werr
		case !status.Stopped():
			if thread == c.Process.Pid {
				fmt.Fprintf(os.Stderr, "\n%s %d\n", envKillAt, done)
				if status.Signaled() {
					os.Exit(exitTraced)
				}
				os.Exit(status.ExitStatus())
			}
		default:
			signal := 0
			switch sig := status.StopSignal(); sig {
			case syscallStopAt:
				var r syscall.PtraceRegs
				if syscall.PtraceGetRegs(thread, &r) == nil && changes(&r, onlyNames) {
					if done++; done == n {
						_ = c.Process.Kill()
					}
				}
			case syscall.SIGTRAP, syscall.SIGSTOP: // a new thread
			default:
				signal = int(sig)
			}
			_ = syscall.PtraceSyscall(thread, signal) // a killed one is gone
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(exitUntraced)
}

// killAt runs the command, and kills it where envKillAt is said to. It returns how many changes it made,
// and whether it was killed. Without ptrace the test is skipped; under
// CI=true it fails.
func killAt(t *testing.T, at string, c *exec.Cmd) (made int, hit bool) {
	t.Helper()
	c.Env = append(c.Env, envKillAt+"="+at)
	said, err := c.CombinedOutput()
	switch code := c.ProcessState.ExitCode(); {
	case code == exitUntraced && os.Getenv("CI") != "true":
		t.Skipf("SKIPPED, no kill was tried: this system does not let a test trace its child:\n%s", said)
	case code == exitTraced:
		hit = true
	case err != nil && !errors.As(err, new(*exec.ExitError)) || code > exitPerson:
		t.Fatalf("%v: %v\n%s", c.Args[1:], err, said)
	}
	words := strings.Fields(string(said))
	if i := slices.Index(words, envKillAt); i >= 0 {
		made, err = strconv.Atoi(words[i+1])
	}
	if made == 0 {
		t.Fatalf("%v made no change: %v\n%s", c.Args[1:], err, said)
	}
	return made, hit
}
