package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// syncServer takes webhooks with the library of stripe-sync-engine, as its own image does.
//
//go:embed sync.mjs
var syncServer string

// A request is one line of JSON from duesday-bench peers.
type request struct {
	Workers int           `json:"workers"` // 0: charge nothing, and return the CPU time so far
	AtOnce  int           `json:"at_once"` // rows of a transaction
	Length  time.Duration `json:"length"`
}

// A reply is one line of JSON. The first one describes the peers.
type reply struct {
	PostgreSQL string        `json:"postgresql,omitempty"` // version and settings
	Sync       string        `json:"sync,omitempty"`       // versions of stripe-sync-engine, stripe and Node
	Address    string        `json:"address,omitempty"`    // where it takes webhooks
	Units      int           `json:"units"`
	Took       time.Duration `json:"took"`
	CPU        time.Duration `json:"cpu"` // of this process, PostgreSQL and Node, so far
}

// peer serves requests on the standard input until it ends.
func peer(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("peer", flag.ContinueOnError)
	programs := f.String("postgres", "", "`FOLDER` of PostgreSQL's programs")
	userName := f.String("user", "postgres", "`USER` that runs PostgreSQL if this program runs as root")
	dir := f.String("dir", "", "empty `FOLDER` to work in")
	engine := f.String("sync-engine", "", "`FOLDER` with node_modules/@supabase/stripe-sync-engine; empty: none")
	secret := f.String("secret", "", "`SECRET` that signs webhooks")
	subscriptions := f.Int("subscriptions", 0, "`N` subscriptions that are due")
	connections := f.Int("connections", 128, "`N` connections to PostgreSQL")
	cache := f.Int("cache", 512, "`MiB` of PostgreSQL's shared buffers")
	if err := f.Parse(args); err != nil {
		return err
	}
	settings := []string{fmt.Sprintf("shared_buffers=%dMB", *cache), "max_wal_size=4GB", fmt.Sprintf("max_connections=%d", *connections+72)}
	db, err := startCluster(*programs, *userName, *dir, settings...)
	if err != nil {
		return err
	}
	defer db.stop()
	if err := db.fill(ctx, strings.ReplaceAll(dueBook, "$1", strconv.Itoa(*subscriptions))); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, fmt.Sprintf("%s pool_max_conns=%d", db.dsn, *connections))
	if err != nil {
		return err
	}
	defer pool.Close()
	b := &biller{db: pool}
	b.processor.charges = map[string]string{}
	first := reply{}
	if err := pool.QueryRow(ctx, "SELECT version(), current_date").Scan(&first.PostgreSQL, &b.day); err != nil {
		return err
	}
	first.PostgreSQL += ", " + strings.Join(settings, ", ")
	pids := func() []int { return append(db.processes(), os.Getpid()) }
	if *engine != "" {
		node, started, err := startSync(ctx, *engine, *secret, *dir)
		if err != nil {
			return err
		}
		defer func() { _ = node.Process.Kill(); _ = node.Wait() }()
		first.Sync, first.Address = started.Sync, started.Address
		pids = func() []int { return append(db.processes(), os.Getpid(), node.Process.Pid) }
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(first); err != nil {
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var r request
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var done reply
		if r.Workers > 0 {
			start := time.Now()
			done.Units, err = b.charge(ctx, r.Workers, r.AtOnce, r.Length)
			if err == nil { // what it put off belongs to its time
				_, err = pool.Exec(ctx, "CHECKPOINT")
			}
			if err != nil {
				return err
			}
			done.Took = time.Since(start)
		}
		done.CPU = cpuOf(pids())
		if err := out.Encode(done); err != nil {
			return err
		}
	}
}

// startSync starts the server on Node, which creates its tables first. Its first line describes it.
func startSync(ctx context.Context, engine, secret, socket string) (*exec.Cmd, *reply, error) {
	script := filepath.Join(engine, "duesday-bench-sync.mjs") // beside node_modules, where Node looks for modules
	if err := os.WriteFile(script, []byte(syncServer), 0o600); err != nil {
		return nil, nil, err
	}
	defer os.Remove(script) // Node has read it when it is started
	c := exec.CommandContext(ctx, "node", script)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Dir, c.Stderr = engine, os.Stderr
	c.Env = append(os.Environ(), "NODE_ENV=production", "SYNC_SOCKET="+socket, "SYNC_SECRET="+secret)
	pipe, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	started, out := new(reply), bufio.NewReader(pipe)
	line, err := out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, started)
	}
	if err != nil {
		_ = c.Process.Kill()
		return nil, nil, errors.Join(fmt.Errorf("stripe-sync-engine: %w", err), c.Wait())
	}
	go func() { _, _ = out.WriteTo(os.Stderr) }()
	return c, started, nil
}
