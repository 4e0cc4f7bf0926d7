// Command postgres measures two requests of Duesday's API beside a plain service that does the same with
// PostgreSQL: create a subscription, and read its paid period. Both sides take turns on this machine, each
// over 64 connections. As postgres peer, it is the other side of duesday-bench peers.
//
// It is a module of its own, so that the product needs no PostgreSQL driver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

type options struct {
	duesday, postgres, user, dir             string
	subscriptions, connections, pool, rounds int
	length                                   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		var l net.Listener
		if l, err = net.FileListener(os.NewFile(3, "listener")); err == nil {
			err = serveService(ctx, l, os.Args[2])
		}
	} else if len(os.Args) > 1 && os.Args[1] == "peer" {
		err = peer(ctx, os.Args[2:])
	} else {
		err = measure(ctx)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context) (err error) {
	var o options
	flag.StringVar(&o.duesday, "duesday", "duesday", "`FILE` of the product")
	flag.StringVar(&o.postgres, "postgres", "/usr/lib/postgresql/15/bin", "`FOLDER` of PostgreSQL's programs")
	flag.StringVar(&o.user, "user", "postgres", "`USER` that runs PostgreSQL if this program runs as root")
	flag.StringVar(&o.dir, "dir", "", "`FOLDER` to work in; its disk is measured (default: the temporary folder)")
	flag.IntVar(&o.subscriptions, "subscriptions", 20_000, "`N` paid subscriptions on each side")
	flag.IntVar(&o.connections, "connections", 64, "`N` connections")
	flag.IntVar(&o.pool, "pool", 32, "`N` connections of the service to PostgreSQL")
	flag.IntVar(&o.rounds, "rounds", 5, "`N` rounds after the first, which does not count")
	flag.DurationVar(&o.length, "length", 10*time.Second, "`TIME` of each figure")
	flag.Parse()
	if o.duesday, err = filepath.Abs(o.duesday); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp(o.dir, "bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	if err := os.Chmod(o.dir, 0o755); err != nil { // PostgreSQL's user passes through it
		return err
	}
	var sides [2]*side
	for i, open := range []func(context.Context, *options, string) (*side, error){duesdaySide, postgresSide} {
		folder := filepath.Join(o.dir, fmt.Sprint(i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		if sides[i], err = open(ctx, &o, folder); err != nil {
			return err
		}
		defer sides[i].stop()
	}
	return o.inTurn(ctx, sides)
}

// inTurn measures both requests of both sides in turn. The side that begins changes each round.
func (o *options) inTurn(ctx context.Context, sides [2]*side) error {
	names := []string{"create a subscription", "read its paid period"}
	var samples [2][2][]sample // by request and side
	for round := range o.rounds + 1 {
		for request := range names {
			for turn := range sides {
				i := (turn + round) % 2
				next, want := creates(sides[i].key, round), http.StatusCreated
				if request == 1 {
					next, want = reads(sides[i].key, o.subscriptions), http.StatusOK
				}
				before := sides[i].cpu()
				n, s, err := load(sides[i].address, o.connections, o.length, next, want)
				if err != nil || ctx.Err() != nil {
					return fmt.Errorf("%s, %s: %w", sides[i].name, names[request], errors.Join(err, ctx.Err()))
				}
				s.cpu = float64((sides[i].cpu() - before).Microseconds()) / float64(n)
				if round > 0 {
					samples[request][i] = append(samples[request][i], s)
				}
				fmt.Fprintf(os.Stderr, "round %d, %s, %s: %.0f/s, p50 %.1f ms, p99 %.1f ms, CPU %.0f µs\n", round, names[request],
					sides[i].name, s.perSecond, s.p50, s.p99, s.cpu)
			}
		}
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "min / median / max\tper second\tp50, ms\tp99, ms\tserver CPU, µs")
	for request, name := range names {
		for i, s := range sides {
			all := samples[request][i]
			fmt.Fprintf(t, "%s, %s\t%s\t%s\t%s\t%s\n", name, s.name, spread("%.0f", all, func(s sample) float64 { return s.perSecond }),
				spread("%.1f", all, func(s sample) float64 { return s.p50 }), spread("%.1f", all, func(s sample) float64 { return s.p99 }),
				spread("%.0f", all, func(s sample) float64 { return s.cpu }))
		}
		ratios := make([]sample, o.rounds)
		for i := range ratios {
			ratios[i].perSecond = samples[request][0][i].perSecond / samples[request][1][i].perSecond
		}
		fmt.Fprintf(t, "%s, ratio\t%s\n", name, spread("%.2f", ratios, func(s sample) float64 { return s.perSecond }))
	}
	return t.Flush()
}

func spread(format string, all []sample, value func(sample) float64) string {
	var v []float64
	for _, s := range all {
		v = append(v, value(s))
	}
	slices.Sort(v)
	return fmt.Sprintf(format+" / "+format+" / "+format, v[0], v[len(v)/2], v[len(v)-1])
}
