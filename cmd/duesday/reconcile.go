package main

import (
	"github.com/spf13/cobra"
)

func (p *program) reconcileCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reconcile",
		Short: "Adopt charges of the processor that the store does not know",
		Long: `Adopt the processor's successful charges that the store does not know: after a restored
backup, say. Each settles its period as if its answer had come late. A run that finds
such charges switches charging off; switch it on again with duesday charging on.`,
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return p.with(ctx, need{processor: true}, func(s *session) error {
				n, err := s.engine.Reconcile(ctx)
				p.deliver(ctx, s)
				if err != nil {
					return err
				}
				meta, err := s.engine.Meta(ctx)
				if err != nil {
					return err
				}
				if p.cfg.JSON {
					return p.object(reconcileView{n, meta.Charging})
				}
				p.say("%s adopted", plural(n, "charge"))
				if !meta.Charging {
					p.say("charging is still off: %s", p.hint("charging on"))
				}
				return nil
			})
		},
	}
}

type reconcileView struct {
	Adopted  int  `json:"adopted"`
	Charging bool `json:"charging"`
}
