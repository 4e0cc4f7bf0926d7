package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

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

// print shows the cells: rates, CPU and ratios as smallest, median and largest.
func (b *benchmark) print(cells []bench.Cell) error {
	type sideView struct {
		Rate bench.Range `json:"per_second"`
		CPU  bench.Range `json:"cpu_seconds_per_100k"`
		P50  bench.Range `json:"p50_ms,omitzero"`
		P99  bench.Range `json:"p99_ms,omitzero"`
	}
	sideOf := func(s []bench.Sample) sideView {
		return sideView{bench.Rates(s), bench.CPUs(s), bench.Milliseconds(s, p50), bench.Milliseconds(s, p99)}
	}
	type cellView struct {
		Name  string      `json:"name"`
		Unit  string      `json:"unit"`
		Ours  sideView    `json:"ours"`
		Bare  sideView    `json:"baseline"`
		Ratio bench.Range `json:"ratio"`
	}
	memory := cmp.Or(b.peakMemory, bench.PeakMemory()) >> 20
	if b.json {
		var views []cellView
		for _, c := range cells {
			views = append(views, cellView{c.Name, c.Unit, sideOf(c.Ours), sideOf(c.Bare), c.Ratios()})
		}
		return b.object(map[string]any{"cells": views, "peak_memory_mib": memory, "subscriptions": b.subscriptions,
			"workers": b.workers, "seconds": b.seconds, "rounds": b.rounds})
	}
	t := newTable(b.stdout, "", "min", "median", "max", "CPU s/100k")
	for _, c := range cells {
		line := func(name string, r bench.Range, format, cpu string) {
			t.row(name, fmt.Sprintf(format, r.Min), fmt.Sprintf(format, r.Median), fmt.Sprintf(format, r.Max), cpu)
		}
		times := func(of []bench.Sample) {
			if p := bench.Milliseconds(of, p99); p.Max > 0 {
				line("  p50, ms", bench.Milliseconds(of, p50), "%.1f", "")
				line("  p99, ms", p, "%.1f", "")
			}
		}
		line(c.Name+", "+c.Unit+"/s", bench.Rates(c.Ours), "%.0f", fmt.Sprintf("%.1f", bench.CPUs(c.Ours).Median))
		times(c.Ours)
		if len(c.Bare) > 0 {
			line("baseline", bench.Rates(c.Bare), "%.0f", fmt.Sprintf("%.1f", bench.CPUs(c.Bare).Median))
			times(c.Bare)
			line("ratio", c.Ratios(), "%.2f", "")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.stdout, "peak memory %d MiB; %d subscriptions, %d workers, %d rounds of %d s a side\n",
		memory, b.subscriptions, b.workers, b.rounds, b.seconds)
	return nil
}

func p50(s bench.Sample) time.Duration { return s.P50 }
func p99(s bench.Sample) time.Duration { return s.P99 }
