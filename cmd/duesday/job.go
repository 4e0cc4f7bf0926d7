package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

func (p *program) jobCommand() *cobra.Command {
	g := group("job", "List the open jobs of purchases, and retry those that were given up", p.jobList(), p.jobReplay())
	g.Long = `Look at what duesday serve has still to do for purchases: the jobs of --on-fulfil and
--on-unsubscribe. One that fails is tried ten times over three days and then given up; one
that says that it can never be done is given up at once.`
	return g
}

func (p *program) jobList() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the open jobs, and after them those that were given up",
		Args:  want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{},
				func(b *backend) error { return p.listJobs(cmd.Context(), b, &f) })
		},
	}
	return f.on(c)
}

func (p *program) listJobs(ctx context.Context, b *backend, f *backendFlags) error {
	dead := 0
	n, err := list(p, b.backlog.Jobs(ctx), func(j tracking.WaitingJob) tracking.WaitingJob {
		j.Error = secret.Clean(j.Error)
		return j
	}, []string{"JOB", "STATE", "NEXT TRY", "TRIES", "WHY"}, func(j tracking.WaitingJob) []string {
		state := "waits"
		if j.Dead {
			state = "given up"
			dead++
		}
		return []string{j.ID, state, stamp(j.Due), strconv.Itoa(j.Tries), secret.Clean(j.Error)}
	})
	if err != nil {
		return err
	}
	p.say("\n%s, %d given up", plural(n, "job"), dead)
	if dead > 0 {
		p.say("Have one tried again: %s", f.hint(p, "job replay JOB"))
	}
	return nil
}

func (p *program) jobReplay() *cobra.Command {
	var f backendFlags
	c := &cobra.Command{
		Use:   "replay JOB",
		Short: "Retry a job that was given up, with all its tries",
		Args:  want("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withBackend(cmd.Context(), &f, backendNeed{write: true}, func(b *backend) error {
				id := args[0]
				if err := b.backlog.ReplayJob(cmd.Context(), id); err != nil {
					return notFound(err, "job "+id+" that was given up")
				}
				if p.cfg.JSON {
					return p.object(replayView{id})
				}
				p.say("job %s is due: a running duesday serve does it", id)
				return nil
			})
		},
	}
	return f.on(c)
}
