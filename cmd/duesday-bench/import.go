package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/duesday/duesday/cmd/duesday-bench/bench"
	"github.com/duesday/duesday/internal/test/consumption"
)

// imports runs duesday import over a file: opening and closing the store are part of it.
func (b *benchmark) imports(ctx context.Context) (*bench.Cell, error) {
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	file := filepath.Join(b.folder, "book.csv")
	if err := writeBook(file, b.subscriptions); err != nil {
		return nil, err
	}
	sides := []bench.Work{
		func() (int, []time.Duration, error) { return b.subscriptions, nil, b.importOnce(ctx, file) },
		func() (int, []time.Duration, error) { return b.subscriptions, nil, b.loadBare() }}
	if b.alone {
		sides = sides[:1]
	}
	return b.inTurn("import", "subscriptions", ready, sides...)
}

// importOnce runs the product as a user does, in a process of its own.
func (b *benchmark) importOnce(ctx context.Context, file string) error {
	dir := filepath.Join(b.folder, "import")
	c := exec.CommandContext(ctx, b.product, "import", file, "--json", "--store", "pebble:"+dir)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("import: %w: %s", err, out)
	}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.peakMemory = max(b.peakMemory, u.Maxrss<<10) // kilobytes on Linux
	}
	return os.RemoveAll(dir)
}

func (b *benchmark) build(ctx context.Context) error {
	if b.product != "" {
		return nil
	}
	b.product = filepath.Join(b.folder, "duesday")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.product,
		"github.com/duesday/duesday/cmd/duesday").CombinedOutput(); err != nil {
		return fmt.Errorf("building duesday: %w: %s", err, out)
	}
	return nil
}

func (b *benchmark) loadBare() error {
	dir := filepath.Join(b.folder, "bare")
	bare, err := bench.OpenBare(dir, b.cache())
	if err != nil {
		return err
	}
	return errors.Join(bare.Load(b.subscriptions), bare.Close(), os.RemoveAll(dir))
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
		id := consumption.Scatter(i)
		fmt.Fprintf(w, "acct_%010d,customer.%d@example.com,sub_%010d,plan-%03d,%d.99,USD,%d,pm_card_visa,\"%d Bridge "+
			"Street, Birmingham, B12 7ST, United Kingdom\"\n",
			id, id, id, i%200, 5+i%50, i%28+1, i%900+1)
	}
	return errors.Join(w.Flush(), f.Close())
}
