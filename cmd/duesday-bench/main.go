// Command duesday-bench measures Duesday on this machine: its performance relative to a bare, tuned
// Pebble, to PostgreSQL and to stripe-sync-engine, and the DynamoDB units that each engine operation
// consumes.
//
// It is not a part of the product, and does not judge the figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(150) // as duesday does
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "duesday-bench: %v\n", err)
		os.Exit(1)
	}
}

// A benchmark is one invocation: its flags, its streams and its working folder.
type benchmark struct {
	subscriptions int
	workers       int
	seconds       int
	rounds        int
	cacheMiB      int
	folder        string
	product       string // the duesday binary; empty builds one
	alone         bool   // without the bare side: for the memory, and for a profile
	json          bool
	peakMemory    int64 // in bytes, of the product in a process of its own; 0: it runs in this one
	stdout        io.Writer
	stderr        io.Writer
}

func command(stdout, stderr io.Writer) *cobra.Command {
	b := &benchmark{stdout: stdout, stderr: stderr}
	root := &cobra.Command{Use: "duesday-bench", Short: "Measure Duesday on this machine", SilenceErrors: true,
		SilenceUsage: true}
	one := func(name, short string, measure func(context.Context) (*bench.Cell, error)) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), measure)
		}}
	}
	imports := one("import", "Import a file, checks and all, in turn with W4 on bare Pebble", b.imports)
	imports.Flags().StringVar(&b.product, "duesday", "",
		"`FILE` of the product to measure (default: built from the module of the working folder)")
	root.AddCommand(
		one("payments", "Charge for some seconds, in turn with W1 on bare Pebble", b.payments),
		one("due", "Stream the rows of a due date, in turn with W3 on bare Pebble", b.due),
		imports,
		b.dayCommand(), b.webhooksCommand(), b.peersCommand(), b.sizesCommand(), b.pagesCommand(), b.unitsCommand())
	root.SetOut(stdout)
	root.SetErr(stderr)
	f := root.PersistentFlags()
	f.IntVar(&b.subscriptions, "subscriptions", 1_000_000, "`N` subscriptions in the book")
	f.IntVar(&b.workers, "workers", 128, "`N` at a time")
	f.IntVar(&b.seconds, "seconds", 20, "`N` seconds for each figure")
	f.IntVar(&b.rounds, "rounds", 3, "`N` rounds of both sides in turn")
	f.IntVar(&b.cacheMiB, "cache", 512, "`MiB` of block cache for each side")
	f.StringVar(&b.folder, "dir", "",
		"`FOLDER` to work in; its disk is measured (default a new one in the temporary folder)")
	f.BoolVar(&b.alone, "alone", false, "leave the bare side out")
	f.BoolVar(&b.json, "json", false, "print JSON, for programs")
	return root
}

func (b *benchmark) run(ctx context.Context, measure func(context.Context) (*bench.Cell, error)) error {
	return b.inFolder(func() error {
		cell, err := measure(ctx)
		if err != nil {
			return err
		}
		return b.print(cell)
	})
}

// inFolder checks the flags and does the work in a new folder, which it removes afterwards.
func (b *benchmark) inFolder(do func() error) (err error) {
	if b.subscriptions < 1000 || b.workers < 1 || b.seconds < 1 || b.rounds < 1 || b.cacheMiB < 8 {
		return errors.New("a measurement needs at least 1000 subscriptions, 1 worker, 1 second, 1 round and 8 MiB of cache")
	}
	if b.folder, err = os.MkdirTemp(b.folder, "duesday-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if b.folder, err = filepath.Abs(b.folder); err != nil { // the programs that it starts have folders of their own
		return err
	}
	if b.product != "" {
		if b.product, err = filepath.Abs(b.product); err != nil {
			return err
		}
	}
	return do()
}

func (b *benchmark) length() time.Duration { return time.Duration(b.seconds) * time.Second }

func (b *benchmark) cache() int64 { return int64(b.cacheMiB) << 20 }

// ours opens our side, with n subscriptions that are due over the days in turn.
func (b *benchmark) ours(ctx context.Context, name string, n, days int) (*bench.Ours, error) {
	ours, err := bench.OpenOurs(ctx, filepath.Join(b.folder, name), b.cache())
	if err != nil {
		return nil, err
	}
	b.note("loading %d subscriptions", n)
	if err := ours.Load(ctx, n, days, 8); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	ours.Settle()
	return ours, nil
}

// inTurn measures the sides in turn, ours first. before, which is not measured, begins each round.
func (b *benchmark) inTurn(name, unit string, before func(*bench.Cell) error, sides ...bench.Work) (*bench.Cell,
	error) {
	cell := &bench.Cell{Name: name, Unit: unit}
	for round := range b.rounds {
		b.note("%s, round %d of %d", name, round+1, b.rounds)
		if err := before(cell); err != nil {
			return nil, err
		}
		for i, side := range sides {
			s, err := bench.Measure(side)
			if err != nil {
				return nil, err
			}
			cell.Sides[i] = append(cell.Sides[i], s)
		}
	}
	return cell, nil
}

func ready(*bench.Cell) error { return nil }

// againstBare measures our side in turn with a bare one of n subscriptions, unless that is left out.
func (b *benchmark) againstBare(name, unit string, n int, before func(*bench.Cell) error, ours bench.Work,
	work func(*bench.Bare) (int, []time.Duration, error)) (_ *bench.Cell, err error) {
	if b.alone {
		return b.inTurn(name, unit, before, ours)
	}
	bare, err := bench.OpenBare(filepath.Join(b.folder, "bare"), b.cache())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	if err := bare.Load(n); err != nil {
		return nil, err
	}
	return b.inTurn(name, unit, func(c *bench.Cell) error {
		bare.Settle()
		return before(c)
	}, ours, func() (int, []time.Duration, error) { return work(bare) })
}

// note shows a person the progress: a benchmark takes minutes.
func (b *benchmark) note(format string, args ...any) {
	fmt.Fprintf(b.stderr, "bench: "+format+"\n", args...)
}

func (b *benchmark) object(v any) error {
	enc := json.NewEncoder(b.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
