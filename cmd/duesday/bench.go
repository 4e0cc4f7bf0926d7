package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/bench"
)

// A benchmark is one invocation of bench: what its flags say, and where it works.
type benchmark struct {
	*program
	subscriptions int
	workers       int
	seconds       int
	rounds        int
	cacheMiB      int
	folder        string
	alone         bool // without the bare side: for the memory, and for a profile
}

func (p *program) benchCommand() *cobra.Command {
	b := &benchmark{program: p}
	one := func(name, short string, do func(context.Context) ([]bench.Cell, error)) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: want(), RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), do)
		}}
	}
	g := group("bench", "Measure this machine: ratios to a bare, tuned Pebble that commits fixed bytes",
		one("payments", "Charge for some seconds, in turn with W1 on bare Pebble", b.payments),
		one("due", "Stream the rows of a due date, in turn with W3 on bare Pebble", b.due),
		one("import", "Import a file, checks and all, in turn with W4 on bare Pebble", b.imports),
		one("day", "Cost per charge on days when 1 % is due, a tenth of the book in turn with the whole", b.days),
		b.webhooksCommand(),
		p.benchUnitsCommand())
	f := g.PersistentFlags()
	f.IntVar(&b.subscriptions, "subscriptions", 1_000_000, "`N` subscriptions in the book")
	f.IntVar(&b.workers, "workers", 128, "`N` at a time")
	f.IntVar(&b.seconds, "seconds", 20, "`N` seconds for each figure")
	f.IntVar(&b.rounds, "rounds", 3, "`N` rounds of both sides in turn")
	f.IntVar(&b.cacheMiB, "cache", 512, "`MiB` of block cache for each side")
	f.StringVar(&b.folder, "dir", "", "`FOLDER` to work in; its disk is what is measured (default a new one in the temporary folder)")
	f.BoolVar(&b.alone, "alone", false, "leave the bare side out")
	return g
}

func (b *benchmark) run(ctx context.Context, do func(context.Context) ([]bench.Cell, error)) (err error) {
	if b.subscriptions < 1000 || b.workers < 1 || b.seconds < 1 || b.rounds < 1 || b.cacheMiB < 8 {
		return usagef("bench: want at least 1000 subscriptions, 1 worker, 1 second, 1 round and 8 MiB of cache")
	}
	if b.folder, err = os.MkdirTemp(b.folder, "duesday-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	cells, err := do(ctx)
	if err != nil {
		return err
	}
	return b.print(cells)
}

func (b *benchmark) length() time.Duration { return time.Duration(b.seconds) * time.Second }

func (b *benchmark) cache() int64 { return int64(b.cacheMiB) << 20 }

// sides opens both sides in folders of their own. bare is nil when it is left out.
func (b *benchmark) sides(ctx context.Context, name string) (ours *bench.Ours, bare *bench.Bare, done func() error, err error) {
	dir := filepath.Join(b.folder, name)
	if ours, err = bench.OpenOurs(ctx, filepath.Join(dir, "ours"), b.cache()); err != nil {
		return nil, nil, nil, err
	}
	if !b.alone {
		if bare, err = bench.OpenBare(filepath.Join(dir, "bare"), b.cache()); err != nil {
			return nil, nil, nil, errors.Join(err, ours.Close())
		}
	}
	return ours, bare, func() error {
		err := ours.Close()
		if bare != nil {
			err = errors.Join(err, bare.Close())
		}
		return errors.Join(err, os.RemoveAll(dir))
	}, nil
}

// load fills both sides and waits until neither compacts.
func (b *benchmark) load(ctx context.Context, ours *bench.Ours, bare *bench.Bare, n, days int) error {
	b.note("loading %d subscriptions", n)
	if _, err := ours.Load(ctx, n, days, 8); err != nil {
		return err
	}
	if bare != nil {
		if _, err := bare.Load(n); err != nil {
			return err
		}
		bare.Settle()
	}
	ours.Settle()
	return nil
}

// note tells a person what is going on; a benchmark takes minutes.
func (b *benchmark) note(format string, args ...any) {
	fmt.Fprintf(b.stderr, "bench: "+format+"\n", args...)
}

func (b *benchmark) payments(ctx context.Context) (cells []bench.Cell, err error) {
	ours, bare, done, err := b.sides(ctx, "payments")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := b.load(ctx, ours, bare, b.subscriptions, 1); err != nil {
		return nil, err
	}
	cell := bench.Cell{Name: "payments", Unit: "charges"}
	month, first := 0, 0
	for round := range b.rounds {
		b.note("payments, round %d of %d", round+1, b.rounds)
		s, err := bench.Measure(func() (int, error) {
			charged, took, err := ours.Pay(ctx, ours.Day(31*month), b.workers, b.length())
			if took < b.length() {
				month++ // the book is paid: on to the next period
			}
			return charged, err
		})
		if err != nil {
			return nil, err
		}
		cell.Ours = append(cell.Ours, s)
		if bare == nil {
			continue
		}
		if s, err = bench.Measure(func() (int, error) {
			units, err := bare.Pay(first, b.workers, b.length())
			first += units
			return units, err
		}); err != nil {
			return nil, err
		}
		cell.Bare = append(cell.Bare, s)
	}
	return []bench.Cell{cell}, nil
}

func (b *benchmark) due(ctx context.Context) (cells []bench.Cell, err error) {
	ours, bare, done, err := b.sides(ctx, "due")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := b.load(ctx, ours, bare, b.subscriptions, 1); err != nil {
		return nil, err
	}
	again := func(scan func() (int, float64, error)) func() (int, error) {
		return func() (total int, err error) {
			for end := time.Now().Add(b.length()); time.Now().Before(end); {
				rows, _, err := scan()
				if total += rows; err != nil || ctx.Err() != nil {
					return total, errors.Join(err, ctx.Err())
				}
			}
			return total, nil
		}
	}
	cell := bench.Cell{Name: "due rows", Unit: "rows"}
	for round := range b.rounds {
		b.note("due rows, round %d of %d", round+1, b.rounds)
		s, err := bench.Measure(again(func() (int, float64, error) { return ours.Scan(ctx, ours.Day(0)) }))
		if err != nil {
			return nil, err
		}
		cell.Ours = append(cell.Ours, s)
		if bare == nil {
			continue
		}
		if s, err = bench.Measure(again(func() (int, float64, error) { return bare.Scan(0) })); err != nil {
			return nil, err
		}
		cell.Bare = append(cell.Bare, s)
	}
	return []bench.Cell{cell}, nil
}

// days charges days on which 1 % is due, in a book of a tenth of the subscriptions in turn
// with one of all; the smaller stands in the place of the bare side.
func (b *benchmark) days(ctx context.Context) (cells []bench.Cell, err error) {
	cell := bench.Cell{Name: "charges on a 1 % day: whole book / a tenth", Unit: "charges"}
	var books [2]*bench.Ours
	for i, n := range [2]int{b.subscriptions, b.subscriptions / 10} {
		o, err := bench.OpenOurs(ctx, filepath.Join(b.folder, fmt.Sprint("day", i)), b.cache())
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		if err := b.load(ctx, o, nil, n, 100); err != nil {
			return nil, err
		}
		books[i] = o
	}
	var next [2]int
	for round := range b.rounds {
		b.note("1 %% days, round %d of %d", round+1, b.rounds)
		for i, o := range books {
			s, err := bench.Measure(func() (total int, err error) {
				for end := time.Now().Add(b.length()); time.Now().Before(end); {
					charged, _, err := o.Pay(ctx, o.Day(next[i]), b.workers, 0)
					next[i]++
					if total += charged; err != nil {
						return total, err
					}
				}
				return total, nil
			})
			if err != nil {
				return nil, err
			}
			if i == 0 {
				cell.Ours = append(cell.Ours, s)
			} else {
				cell.Bare = append(cell.Bare, s)
			}
		}
	}
	return []bench.Cell{cell}, nil
}
