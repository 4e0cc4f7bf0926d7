package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

// dueDays is the number of days over which a book is due: 1 % on each.
const dueDays = 100

// A dayBook is one side of the day command: a store and the days that it was charged.
type dayBook struct {
	subscriptions int
	ours          *bench.Ours
	day           int // the next day to charge
	samples       []bench.Sample
}

func (b *benchmark) dayCommand() *cobra.Command {
	var sizes []int
	before := 0
	c := &cobra.Command{
		Use:   "day",
		Short: "Charge on days when 1 % is due, with books of several sizes in turn",
		Long: `Loads a store of each size and charges day after day, on each 1 % of the subscriptions, each of an
account of its own that has not been visited since it was created. The first days are not measured:
they also pay for what the load has left to compact, and the levels of the store are not yet full.
Then the sizes take turns. Each charges whole days for the seconds of a round, or the days that are
left for it. Shows the cost of a charge, and its ratio to the first size in the same round.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("subscriptions") {
				return errors.New("day takes --sizes instead of --subscriptions")
			}
			if len(sizes) == 0 || slices.Min(sizes) < 1000 || before < 0 || before+b.rounds > dueDays {
				return fmt.Errorf("a day needs sizes of at least 1000, and at most %d days: --before, and one for each round", dueDays)
			}
			return b.inFolder(func() error { return b.days(cmd.Context(), sizes, before) })
		},
	}
	c.Flags().IntSliceVar(&sizes, "sizes", []int{100_000, 1_000_000}, "`N,…` subscriptions")
	c.Flags().IntVar(&before, "before", 5, "`N` days that are charged first and not measured")
	return c
}

func (b *benchmark) days(ctx context.Context, sizes []int, before int) (err error) {
	var books []*dayBook
	for i, n := range sizes {
		o, wrong := b.ours(ctx, fmt.Sprint("day", i), n, dueDays)
		if wrong != nil {
			return wrong
		}
		defer func() { err = errors.Join(err, o.Close()) }()
		book := &dayBook{subscriptions: n, ours: o}
		books = append(books, book)
		for range before {
			if _, err := b.oneDay(ctx, book); err != nil {
				return err
			}
		}
	}
	for round := range b.rounds {
		b.note("day, round %d of %d", round+1, b.rounds)
		for _, book := range books {
			if err := b.dayRound(ctx, book, (dueDays-before)*(round+1)/b.rounds+before); err != nil {
				return err
			}
		}
	}
	return b.printDays(books)
}

// dayRound charges whole days for the seconds of a round, but no day from last on.
func (b *benchmark) dayRound(ctx context.Context, book *dayBook, last int) error {
	s, err := bench.Measure(func() (total int, _ []time.Duration, err error) {
		for end := time.Now().Add(b.length()); err == nil && book.day < last && time.Now().Before(end); {
			var charged int
			charged, err = b.oneDay(ctx, book)
			total += charged
		}
		return total, nil, err
	})
	book.samples = append(book.samples, s)
	return err
}

func (b *benchmark) oneDay(ctx context.Context, book *dayBook) (charged int, err error) {
	charged, _, err = book.ours.Pay(ctx, book.ours.Day(book.day), b.workers, 0)
	book.day++
	return charged, cmp.Or(err, ctx.Err())
}

func (b *benchmark) printDays(books []*dayBook) error {
	type view struct {
		Subscriptions int         `json:"subscriptions"`
		Cost          bench.Range `json:"microseconds_per_charge"`
		CPU           bench.Range `json:"cpu_seconds_per_100k"`
		Ratio         bench.Range `json:"ratio"`
		Days          int         `json:"days"`
	}
	var views []view
	t := newTable(b.stdout, "subscriptions", "µs/charge min", "median", "max", "CPU s/100k", "ratio min", "median", "max", "days")
	for _, book := range books {
		cell := bench.Cell{Sides: [2][]bench.Sample{books[0].samples, book.samples}}
		v := view{book.subscriptions, bench.Over(book.samples, func(s bench.Sample) float64 { return 1e6 / s.PerSecond }),
			bench.Over(book.samples, func(s bench.Sample) float64 { return s.CPU }), cell.Ratios(), book.day}
		views = append(views, v)
		t.row(fmt.Sprint(v.Subscriptions), fmt.Sprintf("%.0f", v.Cost.Min), fmt.Sprintf("%.0f", v.Cost.Median), fmt.Sprintf("%.0f", v.Cost.Max),
			fmt.Sprintf("%.1f", v.CPU.Median), fmt.Sprintf("%.2f", v.Ratio.Min), fmt.Sprintf("%.2f", v.Ratio.Median),
			fmt.Sprintf("%.2f", v.Ratio.Max), fmt.Sprint(v.Days))
	}
	if b.json {
		return b.object(views)
	}
	return t.Flush()
}
