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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	c := exec.Command(o.duesday, "serve", "--json", "--listen", "", "--api", "127.0.0.1:0", "--pages=")
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

// postgresSide serves a database from a process of its own.
func postgresSide(ctx context.Context, o *options, folder string) (*side, error) {
	db, err := startCluster(o.postgres, o.user, folder)
	if err != nil {
		return nil, err
	}
	s := &side{name: "PostgreSQL", key: apiKey, stop: db.stop}
	if err := db.fill(ctx, strings.ReplaceAll(book, "$1", strconv.Itoa(o.subscriptions))); err != nil {
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
	c := exec.Command(self, "serve", db.dsn+" pool_max_conns="+strconv.Itoa(o.pool))
	c.ExtraFiles, c.Stderr = []*os.File{file}, os.Stderr
	if err = errors.Join(err, errSelf, l.Close(), c.Start()); err != nil {
		s.stop()
		return nil, err
	}
	s.address = l.Addr().String()
	s.processes = func() []int { return append(db.processes(), c.Process.Pid) }
	s.stop = func() { _ = c.Process.Kill(); _ = c.Wait(); db.stop() }
	return s, nil
}

// cpu returns the CPU time of the side's processes so far.
func (s *side) cpu() time.Duration { return cpuOf(s.processes()) }
