package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

func (b *benchmark) payments(ctx context.Context) (_ *bench.Cell, err error) {
	ours, err := b.ours(ctx, "ours", b.subscriptions, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	month, first := 0, 0
	return b.againstBare("payments", "charges", b.subscriptions, ready, func() (int, []time.Duration, error) {
		charged, took, err := ours.Pay(ctx, ours.Day(31*month), b.workers, b.length())
		if took < b.length() {
			month++ // the book is paid: on to the next period
		}
		return charged, nil, err
	}, func(bare *bench.Bare) (int, []time.Duration, error) {
		units, err := bare.Pay(first, b.workers, b.length())
		first += units
		return units, nil, err
	})
}

func (b *benchmark) due(ctx context.Context) (_ *bench.Cell, err error) {
	ours, err := b.ours(ctx, "ours", b.subscriptions, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	scan := func() (int, error) { return ours.Scan(ctx, ours.Day(0)) }
	return b.againstBare("due rows", "rows", b.subscriptions, ready, b.again(ctx, scan),
		func(bare *bench.Bare) (int, []time.Duration, error) {
			return b.again(ctx, func() (int, error) { return bare.Scan(0) })()
		})
}

// again is a work that is done again and again for the time of a figure.
func (b *benchmark) again(ctx context.Context, do func() (units int, err error)) bench.Work {
	return func() (total int, _ []time.Duration, err error) {
		for end := time.Now().Add(b.length()); err == nil && time.Now().Before(end); {
			var units int
			units, err = do()
			total, err = total+units, cmp.Or(err, ctx.Err())
		}
		return total, nil, err
	}
}
