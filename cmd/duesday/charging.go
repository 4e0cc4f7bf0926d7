package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/billing"
)

func (p *program) chargingCommand() *cobra.Command {
	var reason string
	off := &cobra.Command{
		Use:   "off",
		Short: "Stop all charges until charging is switched on again",
		Args:  want(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return p.setCharging(cmd.Context(), false, reason) },
	}
	off.Flags().StringVar(&reason, "reason", "", "`TEXT` that runs and people are told")
	on := &cobra.Command{
		Use:   "on",
		Short: "Let runs charge again",
		Args:  want(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return p.setCharging(cmd.Context(), true, "") },
	}
	return group("charging", "Switch charging off or on for the whole store", off, on)
}

type chargingView struct {
	Charging bool   `json:"charging"`
	Reason   string `json:"reason,omitempty"`
}

func (p *program) setCharging(ctx context.Context, on bool, reason string) error {
	if err := billing.CheckText("reason", reason, 1024); err != nil {
		return err
	}
	return p.with(ctx, need{create: true}, func(s *session) error {
		if err := s.engine.SetCharging(ctx, on, reason); err != nil {
			return err
		}
		if p.cfg.JSON {
			return p.object(chargingView{on, reason})
		}
		if on {
			p.say("charging is on")
		} else {
			p.say("charging is off: no run opens or confirms a payment")
		}
		return nil
	})
}
