package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

func (b *benchmark) eventsCommand() *cobra.Command {
	var events int
	c := &cobra.Command{
		Use:   "events FOLDER",
		Short: "Make a store with many events of one Stripe account, to measure duesday on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if err := bench.MakeEvents(cmd.Context(), folder, b.cache(), b.workers, events); err != nil {
				return err
			}
			b.note("%d events are in %s", events, folder)
			return nil
		},
	}
	c.Flags().IntVar(&events, "events", 500_000, "`N` events")
	return c
}
