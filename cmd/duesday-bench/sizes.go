package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
	"github.com/duesday/duesday/internal/clock"
)

func (b *benchmark) sizesCommand() *cobra.Command {
	var sizes []int
	c := &cobra.Command{
		Use:   "sizes",
		Short: "Run the product on stores of several sizes, from the import to a restored backup",
		Long: `For each size, in processes of their own: duesday import; a run that charges the 1 % that are
due, with the sandbox; serve, until it is ready; store backup; store restore of that backup, with
reconcile and verify of the restored store; a full compaction. Shows for each step the seconds and the largest
memory of its process. Each subscription has an account of its own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.inFolder(func() (err error) {
				if err := b.build(cmd.Context()); err != nil {
					return err
				}
				t := newTable(b.stdout, "subscriptions", "step", "seconds", "CPU s", "memory, MiB", "")
				defer func() { err = errors.Join(err, t.Flush()) }()
				for _, n := range sizes {
					if err := b.size(cmd.Context(), t, n); err != nil {
						return fmt.Errorf("%d: %w", n, err)
					}
				}
				return nil
			})
		},
	}
	c.Flags().IntSliceVar(&sizes, "sizes", []int{10_000, 100_000, 1_000_000}, "`N,…` subscriptions")
	c.Flags().StringVar(&b.product, "duesday", "", "`FILE` of the product to measure (default: built from the module of the working folder)")
	return c
}

// size measures one size, and adds its rows.
func (b *benchmark) size(ctx context.Context, t table, n int) (err error) {
	b.note("%d subscriptions", n)
	defer func(parent string) { err = errors.Join(err, os.RemoveAll(b.folder)); b.folder = parent }(b.folder)
	if b.folder, err = os.MkdirTemp(b.folder, ""); err != nil {
		return err
	}
	store, backup, restored := filepath.Join(b.folder, "duesday-data"), filepath.Join(b.folder, "backup"), filepath.Join(b.folder, "restored")
	file, today := filepath.Join(b.folder, "book.csv"), time.Now().UTC()
	if err := writeBook(file, n, func(i int) (day int, next string) {
		due := today.AddDate(0, 0, i%100) // 1 % is due today
		return due.Day(), due.Format(time.DateOnly)
	}); err != nil {
		return err
	}
	step := func(name string, note func() string, do func() error) {
		if err != nil {
			return
		}
		memory := ""
		b.peakMemory = 0
		s, wrong := bench.Measure(func() (int, []time.Duration, error) { return 1, nil, do() })
		if b.peakMemory > 0 {
			memory = fmt.Sprint(b.peakMemory >> 20)
		}
		if err = wrong; err == nil {
			t.row(strconv.Itoa(n), name, fmt.Sprintf("%.2f", 1/s.PerSecond), fmt.Sprintf("%.1f", s.CPU/100_000), memory, note())
		}
	}
	var charged struct {
		Paid    int
		Elapsed int64 `json:"elapsed_ms"`
	}
	run := func(into any, args ...string) func() error {
		return func() error {
			out, err := b.duesday(ctx, append(args, "--cache", strconv.Itoa(b.cacheMiB))...)
			if err == nil && into != nil {
				err = json.Unmarshal(out, into)
			}
			return err
		}
	}
	disk := func(folder string) func() string {
		return func() string { return fmt.Sprintf("%d MiB on disk", diskUse(folder)>>20) }
	}
	nothing := func() string { return "" }
	step("import", disk(store), run(nil, "import", file))
	step("run payments", func() string {
		return fmt.Sprintf("%d charges in %d ms, then their mail; %s", charged.Paid, charged.Elapsed, disk(store)())
	}, run(&charged, "run", "payments", "--workers", strconv.Itoa(b.workers)))
	stop := func() {}
	step("serve, until ready", func() string { return "without its CPU" }, func() (err error) {
		stop, err = b.untilReady(ctx)
		return err
	})
	stop()
	step("store backup", disk(backup), run(nil, "store", "backup", "--to", backup))
	step("store restore", nothing, run(nil, "store", "restore", "--from", backup, "--store", "pebble:"+restored))
	step("reconcile of the restored store", nothing, run(nil, "reconcile", "--store", "pebble:"+restored))
	step("verify of the restored store", nothing, run(nil, "verify", "--store", "pebble:"+restored))
	step("full compaction", disk(store), func() error { return bench.Compact(ctx, store, b.cache()) })
	return err
}

// untilReady starts serve, and returns when /readyz replies. The caller stops it.
func (b *benchmark) untilReady(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	c := exec.CommandContext(ctx, b.product, "serve", "--json", "--no-poll", "--listen=", "--pages=", "--api", "127.0.0.1:0", "--cache", strconv.Itoa(b.cacheMiB))
	c.Dir, c.Stderr = b.folder, b.stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return func() {}, err
	}
	stop = func() { cancel(); _ = c.Wait() } // the end of ctx kills it
	var served struct {
		Base string `json:"api_base"`
	}
	for lines := json.NewDecoder(out); served.Base == "" && err == nil; { // the first line may be a warning
		err = lines.Decode(&served)
	}
	for ready := false; !ready && err == nil; {
		r, wrong := http.Get(served.Base + "/readyz")
		if wrong != nil { // it listens before it prints its addresses, so it has ended
			return stop, wrong
		}
		_ = r.Body.Close()
		if ready = r.StatusCode == http.StatusOK; !ready {
			err = clock.Wait(ctx, time.Millisecond)
		}
	}
	return stop, err
}

// diskUse returns the bytes of the files in the folder.
func diskUse(folder string) (sum int64) {
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				sum += info.Size()
			}
		}
		return err
	})
	return sum
}
