package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

// maxWebhookSeconds keeps a round within the time for which a signature is good.
const maxWebhookSeconds = 120

func (b *benchmark) webhooksCommand() *cobra.Command {
	var subscriptions, connections, events int
	var verifyOnly bool
	var into string
	c := &cobra.Command{
		Use:   "webhooks",
		Short: "Take webhooks over HTTP for some seconds, in turn with W2 on bare Pebble",
		Long: `Sends signed events of Stripe's over HTTP to the real endpoint, in this process and over
loopback, in turn with W2 on bare Pebble: a third each are payments that are made,
subscriptions that are changed, and invoices that are paid. Each is answered when it is
durable; with --verify-only, when its signature is verified. Purchases and bodies are made
before the clock runs; what purchases ask for is put into the outbox, and not delivered.
The CPU includes that of whoever sends. With --into it measures nothing, and leaves a store
with events of one Stripe account, to measure duesday on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if into != "" {
				return bench.MakeEvents(cmd.Context(), into, b.cache(), connections, events)
			}
			b.subscriptions, b.workers = subscriptions, connections
			if os.Getenv("GOGC") == "" { // as duesday serve has it
				defer debug.SetGCPercent(debug.SetGCPercent(400))
			}
			return b.run(cmd.Context(), func(ctx context.Context) (*bench.Cell, error) { return b.webhooks(ctx, verifyOnly) })
		},
	}
	c.Flags().IntVar(&subscriptions, "subscriptions", 20_000, "`N` subscriptions that are known")
	c.Flags().IntVar(&connections, "workers", 64, "`N` connections")
	c.Flags().StringVar(&into, "into", "", "`FOLDER` of a new store with --events, instead of measuring")
	c.Flags().IntVar(&events, "events", 500_000, "`N` events of that store")
	c.Flags().BoolVar(&verifyOnly, "verify-only", false, "answer a verified event at once: the part of HTTP in the cost")
	return c
}

func (b *benchmark) webhooks(ctx context.Context, verifyOnly bool) (_ *bench.Cell, err error) {
	if b.seconds > maxWebhookSeconds {
		return nil, fmt.Errorf("--seconds must be at most %d, because webhook signatures expire (got %d)", maxWebhookSeconds, b.seconds)
	}
	ours, err := bench.OpenWebhooks(ctx, filepath.Join(b.folder, "ours"), b.cache(), verifyOnly)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	perSecond, taken := 15_000, 0 // until it is known
	if verifyOnly {
		perSecond = 40_000
	}
	prepare := func(cell *bench.Cell) error {
		b.note("preparing events of %d bytes", ours.BodyBytes())
		if before := cell.Sides[0]; len(before) > 0 {
			perSecond = int(before[len(before)-1].PerSecond * 3 / 2)
		}
		err := ours.Prepare(ctx, b.subscriptions, b.seconds*perSecond)
		ours.Settle()
		return err
	}
	return b.againstBare("webhooks", "events", 0, prepare,
		func() (int, []time.Duration, error) { return ours.Run(ctx, b.workers, b.length()) },
		func(bare *bench.Bare) (int, []time.Duration, error) {
			units, took, err := bare.Take(taken, b.workers, b.subscriptions, b.length())
			taken += units
			return units, took, err
		})
}
