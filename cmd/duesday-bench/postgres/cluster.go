package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// A cluster is a running PostgreSQL with a new database cluster.
type cluster struct {
	dsn  string
	main *exec.Cmd
}

// startCluster makes a cluster in the folder, with the default settings but for these, such as
// "shared_buffers=512MB". Its clients connect through a socket in the folder.
func startCluster(programs, userName, folder string, settings ...string) (*cluster, error) {
	as := new(syscall.SysProcAttr)
	if os.Getuid() == 0 { // PostgreSQL does not run as root
		u, err := user.Lookup(userName)
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(folder, uid, gid); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(folder, "data")
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(programs, name), args...)
		c.Dir, c.SysProcAttr, c.Stderr = folder, as, os.Stderr
		return c
	}
	if err := command("initdb", "-D", data, "-U", "postgres", "--no-sync", "--auth=trust").Run(); err != nil {
		return nil, fmt.Errorf("initdb: %w", err)
	}
	args := []string{"-D", data, "-k", folder, "-h", ""}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	as.Pdeathsig = syscall.SIGINT // PostgreSQL stops if this process is killed
	c := &cluster{dsn: "host=" + folder + " user=postgres dbname=postgres", main: command("postgres", args...)}
	c.main.Stderr = nil
	return c, c.main.Start()
}

func (c *cluster) stop() { _ = c.main.Process.Signal(syscall.SIGINT); _ = c.main.Wait() }

// processes are those of PostgreSQL: the first one and those that it started.
func (c *cluster) processes() []int { return append(children(c.main.Process.Pid), c.main.Process.Pid) }

// fill creates the tables and loads the book, once PostgreSQL takes connections.
func (c *cluster) fill(ctx context.Context, book string) (err error) {
	var db *pgx.Conn
	for range 100 {
		if db, err = pgx.Connect(ctx, c.dsn); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	for q := range strings.SplitSeq(tables+";"+book+";VACUUM ANALYZE;CHECKPOINT", ";") {
		if _, err = db.Exec(ctx, q); err != nil {
			return errors.Join(err, errors.New(q))
		}
	}
	return nil
}

// children returns the processes that the process has started.
func children(parent int) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		if f := stat(name); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns the fields of /proc/PID/stat after the process's name.
func stat(name string) []string {
	text, _ := os.ReadFile(name)
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// cpuOf returns the CPU time of the processes so far.
func cpuOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		if f := stat(fmt.Sprintf("/proc/%d/stat", pid)); len(f) > 14 {
			for _, at := range []int{11, 12, 13, 14} { // user and system, of the process and of those that it waited for
				ticks, _ := strconv.Atoi(f[at])
				sum += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return sum
}
