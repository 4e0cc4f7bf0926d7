package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

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
