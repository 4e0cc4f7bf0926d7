package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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

// A side is a server that answers both requests.
type side struct {
	name, address, key string
	processes          func() []int // whose CPU counts
	stop               func()
}

// duesdaySide loads a store with the program and serves it.
func duesdaySide(ctx context.Context, o *options, folder string) (s *side, err error) {
	run := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(ctx, o.duesday, args...)
		c.Dir, c.Stderr = folder, os.Stderr
		return c.Output()
	}
	today := time.Now().UTC()
	var rows strings.Builder
	rows.WriteString("account,email,subscription,sku,amount,currency,payment_day,payment_method,next_payment_date\n")
	for i := range o.subscriptions {
		fmt.Fprintf(&rows, "a%d,a%[1]d@example.com,gym,GYM,39.00,GBP,%d,pm_card_visa,%s\n", i, today.Day(), today.Format(time.DateOnly))
	}
	if err := os.WriteFile(filepath.Join(folder, "book.csv"), []byte(rows.String()), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"import", "book.csv"}, {"run", "payments", "--workers", "64"}} {
		if _, err := run(args...); err != nil {
			return nil, fmt.Errorf("duesday %s: %w", args[0], err)
		}
	}
	out, err := run("key", "create", "bench", "--scope", "write", "--json")
	if err != nil {
		return nil, err
	}
	var key struct{ Key string }
	if err := json.Unmarshal(out, &key); err != nil {
		return nil, err
	}
	c := exec.Command(o.duesday, "serve", "--json", "--listen", "", "--api", "127.0.0.1:0")
	c.Dir, c.Stderr = folder, os.Stderr
	pipe, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	s = &side{name: "Duesday", key: key.Key, processes: func() []int { return []int{c.Process.Pid} }, stop: func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}}
	lines := bufio.NewReader(pipe)
	var served struct {
		Address string `json:"api_address"`
	}
	line, err := lines.ReadBytes('\n')
	if err = errors.Join(err, json.Unmarshal(line, &served)); err != nil {
		s.stop()
		return nil, err
	}
	go func() { _, _ = lines.WriteTo(os.Stderr) }()
	s.address = served.Address
	return s, nil
}

const apiKey = "sk_of_the_benchmark"

// postgresSide makes a database cluster with the default settings, and serves it from a process of its own.
func postgresSide(ctx context.Context, o *options, folder string) (*side, error) {
	as := new(syscall.SysProcAttr)
	if os.Getuid() == 0 { // PostgreSQL does not run as root
		u, err := user.Lookup(o.user)
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
		c := exec.Command(filepath.Join(o.postgres, name), args...)
		c.Dir, c.SysProcAttr, c.Stderr = folder, as, os.Stderr
		return c
	}
	if err := command("initdb", "-D", data, "-U", "bench", "--no-sync").Run(); err != nil {
		return nil, fmt.Errorf("initdb: %w", err)
	}
	db := command("postgres", "-D", data, "-k", folder, "-h", "")
	db.Stderr = nil
	if err := db.Start(); err != nil {
		return nil, err
	}
	s := &side{name: "PostgreSQL", key: apiKey, stop: func() { _ = db.Process.Signal(syscall.SIGINT); _ = db.Wait() }}
	dsn := "host=" + folder + " user=bench dbname=postgres"
	if err := fill(ctx, dsn, o.subscriptions); err != nil {
		s.stop()
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.stop()
		return nil, err
	}
	file, err := l.(*net.TCPListener).File()
	self, errSelf := os.Executable()
	c := exec.Command(self, "serve", dsn+" pool_max_conns="+strconv.Itoa(o.pool))
	c.ExtraFiles, c.Stderr = []*os.File{file}, os.Stderr
	if err = errors.Join(err, errSelf, l.Close(), c.Start()); err != nil {
		s.stop()
		return nil, err
	}
	s.address = l.Addr().String()
	s.processes = func() []int { return append(children(db.Process.Pid), db.Process.Pid, c.Process.Pid) }
	stop := s.stop
	s.stop = func() { _ = c.Process.Kill(); _ = c.Wait(); stop() }
	return s, nil
}

func fill(ctx context.Context, dsn string, subscriptions int) (err error) {
	var db *pgx.Conn
	for range 100 { // until it is started
		if db, err = pgx.Connect(ctx, dsn); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if _, err = db.Exec(ctx, tables); err != nil {
		return err
	}
	for q := range strings.SplitSeq(strings.ReplaceAll(book, "$1", strconv.Itoa(subscriptions)), ";") {
		if _, err = db.Exec(ctx, q); err != nil {
			return err
		}
	}
	_, err = db.Exec(ctx, "VACUUM ANALYZE")
	return errors.Join(err, exec1(ctx, db, "CHECKPOINT"))
}

func exec1(ctx context.Context, db *pgx.Conn, q string) error { _, err := db.Exec(ctx, q); return err }

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

// cpu returns the CPU time of the side's processes so far.
func (s *side) cpu() (sum time.Duration) {
	for _, pid := range s.processes() {
		if f := stat(fmt.Sprintf("/proc/%d/stat", pid)); len(f) > 12 {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			sum += time.Duration(user+system) * 10 * time.Millisecond // ticks
		}
	}
	return sum
}
