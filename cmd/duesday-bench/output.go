package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
)

// A table is aligned text.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }

// print shows the cell: rates, CPU and ratios as smallest, median and largest.
func (b *benchmark) print(c *bench.Cell) error {
	type sideView struct {
		Rate bench.Range `json:"per_second"`
		CPU  bench.Range `json:"cpu_seconds_per_100k"`
		P50  bench.Range `json:"p50_ms,omitzero"`
		P99  bench.Range `json:"p99_ms,omitzero"`
	}
	sideOf := func(all []bench.Sample) sideView {
		return sideView{bench.Over(all, func(s bench.Sample) float64 { return s.PerSecond }),
			bench.Over(all, func(s bench.Sample) float64 { return s.CPU }),
			bench.Over(all, func(s bench.Sample) float64 { return s.P50 }),
			bench.Over(all, func(s bench.Sample) float64 { return s.P99 })}
	}
	type cellView struct {
		Name  string      `json:"name"`
		Unit  string      `json:"unit"`
		Ours  sideView    `json:"ours"`
		Bare  sideView    `json:"baseline"`
		Ratio bench.Range `json:"ratio"`
	}
	memory := cmp.Or(b.peakMemory, bench.PeakMemory()) >> 20
	out := b.stdout
	if b.json {
		out = io.Discard
	}
	t := newTable(out, "", "min", "median", "max", "CPU s/100k")
	line := func(name string, r bench.Range, format, cpu string) {
		t.row(name, fmt.Sprintf(format, r.Min), fmt.Sprintf(format, r.Median), fmt.Sprintf(format, r.Max), cpu)
	}
	side := func(name string, v sideView) {
		line(name, v.Rate, "%.0f", fmt.Sprintf("%.1f", v.CPU.Median))
		if v.P99.Max > 0 {
			line("  p50, ms", v.P50, "%.1f", "")
			line("  p99, ms", v.P99, "%.1f", "")
		}
	}
	v := cellView{c.Name, c.Unit, sideOf(c.Sides[0]), sideOf(c.Sides[1]), c.Ratios()}
	side(c.Name+", "+c.Unit+"/s", v.Ours)
	if len(c.Sides[1]) > 0 {
		side("baseline", v.Bare)
		line("ratio", v.Ratio, "%.2f", "")
	}
	if b.json {
		return b.object(map[string]any{"cells": []cellView{v}, "peak_memory_mib": memory, "subscriptions": b.subscriptions,
			"workers": b.workers, "seconds": b.seconds, "rounds": b.rounds})
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "peak memory %d MiB; %d subscriptions, %d workers, %d rounds of %d s a side\n",
		memory, b.subscriptions, b.workers, b.rounds, b.seconds)
	return nil
}
