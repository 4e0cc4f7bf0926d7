package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

// hookConnections are as many as duesday-bench webhooks has by default.
const hookConnections = 64

func (b *benchmark) peersCommand() *cobra.Command {
	p := peers{benchmark: b}
	c := &cobra.Command{
		Use:   "peers",
		Short: "Charge and take webhooks, in turn with PostgreSQL and stripe-sync-engine",
		Long: `Charges in turn with a PostgreSQL schema that keeps the same promise (100 charges in two
transactions, pipelined, and two transactions for each charge), and takes webhooks in turn with
stripe-sync-engine on Node and PostgreSQL. The sides have one machine, one folder and one load.

It installs nothing. It needs PostgreSQL's programs (Debian: apt-get install postgresql-15), Go,
and the source of the module in the folder cmd/duesday-bench/postgres. For the webhooks it also
needs Node and a folder in which somebody called
npm install @supabase/stripe-sync-engine@0.48.5 stripe@23.1.0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.check(); err != nil {
				return err
			}
			return p.inFolder(func() error { return p.run(cmd.Context()) })
		},
	}
	f := c.Flags()
	f.StringVar(&p.postgres, "postgres", "/usr/lib/postgresql/15/bin", "`FOLDER` of PostgreSQL's programs")
	f.StringVar(&p.source, "source", "cmd/duesday-bench/postgres", "`FOLDER` of the other side's source")
	f.StringVar(&p.engine, "sync-engine", "", "`FOLDER` whose node_modules has @supabase/stripe-sync-engine")
	return c
}

// peers is one invocation: Duesday's side in this process, and the others in a process of their own.
type peers struct {
	*benchmark
	postgres, source, engine string

	child   *exec.Cmd
	close   func() error // ends the child's input, and so the child
	in      *json.Encoder
	out     *json.Decoder
	started peerReply
	hooks   *bench.Webhooks
	ours    *bench.Ours
	month   int
}

// A peerReply is what the other process says of itself, or of a round.
type peerReply struct {
	PostgreSQL, Sync, Address string
	Units                     int
	Took, CPU                 time.Duration
}

// check returns everything that is missing, or a flag that is wrong.
func (p *peers) check() (err error) {
	for _, needs := range []string{filepath.Join(p.postgres, "initdb"), filepath.Join(p.source, "go.mod")} {
		if _, wrong := os.Stat(needs); wrong != nil {
			err = errors.Join(err, fmt.Errorf("missing %s", needs))
		}
	}
	programs := []string{"go"}
	if p.engine == "" {
		p.note("left out: webhooks, because --sync-engine is not set")
	} else {
		programs = append(programs, "node")
		for _, module := range []string{"@supabase/stripe-sync-engine", "stripe"} {
			if _, wrong := os.Stat(filepath.Join(p.engine, "node_modules", module)); wrong != nil {
				err = errors.Join(err, fmt.Errorf("missing %s in %s", module, p.engine))
			}
		}
	}
	for _, name := range programs {
		_, wrong := exec.LookPath(name)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		return fmt.Errorf("%w\nsee duesday-bench peers --help", err)
	}
	if p.engine != "" && p.seconds > maxWebhookSeconds {
		return fmt.Errorf("--seconds must be at most %d, because webhook signatures expire (got %d)", maxWebhookSeconds, p.seconds)
	}
	if p.engine != "" {
		p.engine, err = filepath.Abs(p.engine)
	}
	return err
}

func (p *peers) run(ctx context.Context) (err error) {
	if p.hooks, err = bench.OpenWebhooks(ctx, filepath.Join(p.folder, "hooks"), p.cache(), false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.hooks.Close()) }()
	if err := p.startOther(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.child.Wait()) }() // after its input ended
	defer func() { err = errors.Join(err, p.close()) }()
	p.note("loading %d subscriptions into PostgreSQL", p.subscriptions)
	if err := p.out.Decode(&p.started); err != nil {
		return fmt.Errorf("the other side: %w", err)
	}
	if p.ours, err = p.benchmark.ours(ctx, "ours", p.subscriptions, 1); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.ours.Close()) }()
	return p.measure(ctx)
}

// startOther builds and starts the other sides. Their first reply comes when their book is loaded.
func (p *peers) startOther(ctx context.Context) error {
	program, folder := filepath.Join(p.folder, "peer"), filepath.Join(p.folder, "postgres")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Stderr = p.source, p.stderr
	if err := errors.Join(build.Run(), os.Mkdir(folder, 0o700), os.Chmod(p.folder, 0o755)); err != nil { // PostgreSQL's user passes through it
		return err
	}
	p.child = exec.Command(program, "peer", "--postgres", p.postgres, "--dir", folder, "--sync-engine", p.engine, "--secret", p.hooks.Secret(),
		"--subscriptions", fmt.Sprint(p.subscriptions), "--connections", fmt.Sprint(p.workers), "--cache", fmt.Sprint(p.cacheMiB))
	p.child.Stderr = p.stderr
	in, errIn := p.child.StdinPipe()
	out, errOut := p.child.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return err
	}
	p.close, p.in, p.out = in.Close, json.NewEncoder(in), json.NewDecoder(out)
	return p.child.Start()
}

// A figure is one side's of a comparison.
type figure struct {
	name    string
	beside  int // the figure of Duesday that it is compared with
	measure func(context.Context) (bench.Sample, error)
	samples []bench.Sample
}

// measure measures each side once in each round, and prints the table.
func (p *peers) measure(ctx context.Context) error {
	all := []figure{{name: "charges, Duesday", measure: p.charge},
		{name: "charges, PostgreSQL, 100 in two transactions", measure: p.other(8, 100)},
		{name: "charges, PostgreSQL, two transactions for each", measure: p.other(p.workers, 1)}}
	if p.engine != "" {
		all = append(all, figure{name: "webhooks, Duesday", beside: 3, measure: p.webhooks},
			figure{name: "webhooks, stripe-sync-engine", beside: 3, measure: p.sync})
	}
	const charges = 3
	var syncs []time.Duration
	for round := range p.rounds {
		for i := range all {
			if i < charges { // a different one begins each round; the webhooks of a pair follow each other
				i = (i + round) % charges
			}
			f := &all[i]
			p.note("round %d of %d: %s", round+1, p.rounds, f.name)
			one, err := f.measure(ctx)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			f.samples = append(f.samples, one)
		}
		took, err := syncCost(p.folder)
		if err != nil {
			return err
		}
		syncs = append(syncs, took...)
	}
	t := newTable(p.stdout, "min / median / max", "per second", "CPU s/100k", "p99, ms", "Duesday's rate / this one")
	three := func(format string, r bench.Range) string {
		return fmt.Sprintf(format+" / "+format+" / "+format, r.Min, r.Median, r.Max)
	}
	for i, f := range all {
		pair, ratio, late := bench.Cell{Sides: [2][]bench.Sample{all[f.beside].samples, f.samples}}, "", ""
		if i != f.beside {
			ratio = three("%.2f", pair.Ratios())
		}
		if f.samples[0].P99 > 0 {
			late = three("%.1f", bench.Over(f.samples, func(s bench.Sample) float64 { return s.P99 }))
		}
		t.row(f.name, three("%.0f", bench.Over(f.samples, func(s bench.Sample) float64 { return s.PerSecond })),
			three("%.1f", bench.Over(f.samples, func(s bench.Sample) float64 { return s.CPU })), late, ratio)
	}
	slices.Sort(syncs)
	fmt.Fprintf(t, "%s\n%s\n", p.started.PostgreSQL, cmp.Or(p.started.Sync, "webhooks were left out"))
	fmt.Fprintf(t, "a sync of 4 KiB took %v at the median, %v at the 99th percentile\n", bench.Percentile(syncs, 50).Round(time.Microsecond),
		bench.Percentile(syncs, 99).Round(time.Microsecond))
	fmt.Fprintf(t, "%d subscriptions, %d workers, %d MiB of cache on each side, %d rounds of %d s\n", p.subscriptions, p.workers, p.cacheMiB, p.rounds, p.seconds)
	return t.Flush()
}

// charge measures Duesday's side of the charges.
func (p *peers) charge(ctx context.Context) (bench.Sample, error) {
	p.ours.Settle()
	return bench.Measure(func() (all int, _ []time.Duration, err error) {
		for left := p.length(); err == nil && left > 0; {
			charged, took, wrong := p.ours.Pay(ctx, p.ours.Day(31*p.month), p.workers, left)
			all, err = all+charged, wrong
			if left -= took; left > 0 {
				p.month++ // the book is paid: on to the next period
			}
		}
		return all, nil, err
	})
}

// other measures PostgreSQL's side, with so many workers that charge so many at once.
func (p *peers) other(workers, atOnce int) func(context.Context) (bench.Sample, error) {
	return func(context.Context) (bench.Sample, error) {
		before, err := p.ask(0, 0)
		if err != nil {
			return bench.Sample{}, err
		}
		r, err := p.ask(workers, atOnce)
		if err != nil {
			return bench.Sample{}, err
		}
		units := float64(max(r.Units, 1))
		return bench.Sample{PerSecond: units / r.Took.Seconds(), CPU: (r.CPU - before.CPU).Seconds() / units * 100_000}, nil
	}
}

// ask sends the other process a request. It replies at once if no workers are to charge.
func (p *peers) ask(workers, atOnce int) (r peerReply, err error) {
	if err = p.in.Encode(map[string]any{"workers": workers, "at_once": atOnce, "length": p.length()}); err == nil {
		err = p.out.Decode(&r)
	}
	return r, err
}

func (p *peers) webhooks(ctx context.Context) (bench.Sample, error) {
	err := p.hooks.Prepare(ctx, 20_000, p.seconds*15_000)
	if err != nil {
		return bench.Sample{}, err
	}
	p.hooks.Settle()
	return bench.Measure(func() (int, []time.Duration, error) { return p.hooks.Run(ctx, hookConnections, p.length()) })
}

// sync measures the other side of the webhooks, with the CPU of whoever sends, as on Duesday's side.
func (p *peers) sync(ctx context.Context) (bench.Sample, error) {
	before, err := p.ask(0, 0)
	if err != nil {
		return bench.Sample{}, err
	}
	units := 0
	s, err := bench.Measure(func() (_ int, took []time.Duration, err error) {
		units, took, err = p.hooks.Beside(ctx, p.started.Address, hookConnections, p.length())
		return units, took, err
	})
	if err != nil {
		return s, err
	}
	after, err := p.ask(0, 0)
	s.CPU += (after.CPU - before.CPU).Seconds() / float64(max(units, 1)) * 100_000
	return s, err
}

// syncCost returns how long each of 200 writes of 4 KiB to the end of a file took, with its sync.
func syncCost(folder string) (took []time.Duration, err error) {
	f, err := os.CreateTemp(folder, "sync-")
	if err != nil {
		return nil, err
	}
	for range 200 {
		start := time.Now()
		_, wrong := f.Write(make([]byte, 4<<10))
		err = errors.Join(err, wrong, f.Sync())
		took = append(took, time.Since(start))
	}
	return took, errors.Join(err, f.Close(), os.Remove(f.Name()))
}
