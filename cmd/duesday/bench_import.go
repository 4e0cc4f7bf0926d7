package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/bench"
)

// imports runs the command import itself over a file, store opened and closed and all.
func (b *benchmark) imports(ctx context.Context) ([]bench.Cell, error) {
	file := filepath.Join(b.folder, "book.csv")
	if err := writeBook(file, b.subscriptions); err != nil {
		return nil, err
	}
	cell := bench.Cell{Name: "import", Unit: "subscriptions"}
	for round := range b.rounds {
		b.note("import, round %d of %d", round+1, b.rounds)
		s, err := bench.Measure(func() (int, error) { return b.subscriptions, b.importOnce(ctx, file) })
		if err != nil {
			return nil, err
		}
		cell.Ours = append(cell.Ours, s)
		if b.alone {
			continue
		}
		if s, err = bench.Measure(func() (int, error) { return b.subscriptions, b.loadBare() }); err != nil {
			return nil, err
		}
		cell.Bare = append(cell.Bare, s)
	}
	return []bench.Cell{cell}, nil
}

func (b *benchmark) importOnce(ctx context.Context, file string) error {
	dir := filepath.Join(b.folder, "import")
	var said strings.Builder
	p := newProgram(b.env, strings.NewReader(""), io.Discard, &said, b.now)
	if code := p.run(ctx, []string{"import", file, "--json", "--store", "pebble:" + dir}); code != exitDone {
		return fmt.Errorf("import: exit code %d: %s", code, said.String())
	}
	return os.RemoveAll(dir)
}

func (b *benchmark) loadBare() error {
	dir := filepath.Join(b.folder, "bare")
	bare, err := bench.OpenBare(dir, b.cache())
	if err != nil {
		return err
	}
	_, err = bare.Load(b.subscriptions)
	return errors.Join(err, bare.Close(), os.RemoveAll(dir))
}

// writeBook writes a file to import: realistic rows, a month of payment days.
func writeBook(file string, n int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, "account,email,subscription,sku,amount,currency,payment_day,payment_method,address")
	for i := range n {
		id := bench.Scatter(i)
		fmt.Fprintf(w, "acct_%010d,customer.%d@example.com,sub_%010d,plan-%03d,%d.99,USD,%d,pm_card_visa,\"%d Bridge Street, Birmingham, B12 7ST, United Kingdom\"\n",
			id, id, id, i%200, 5+i%50, i%28+1, i%900+1)
	}
	return errors.Join(w.Flush(), f.Close())
}

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
	if b.cfg.JSON {
		var views []cellView
		for _, c := range cells {
			views = append(views, cellView{c.Name, c.Unit, sideOf(c.Ours), sideOf(c.Bare), c.Ratios()})
		}
		return b.object(map[string]any{"cells": views, "peak_memory_mib": bench.PeakMemory() >> 20, "subscriptions": b.subscriptions,
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
	if err := t.flush(); err != nil {
		return err
	}
	b.say("peak memory %d MiB; %d subscriptions, %d workers, %d rounds of %d s a side",
		bench.PeakMemory()>>20, b.subscriptions, b.workers, b.rounds, b.seconds)
	return nil
}

func p50(s bench.Sample) time.Duration { return s.P50 }
func p99(s bench.Sample) time.Duration { return s.P99 }
