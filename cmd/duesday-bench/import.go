package main

import (
	"bufio"
	"cmp"
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
	if err := writeBook(file, b.subscriptions, func(i int) (int, string) { return i%28 + 1, "" }); err != nil {
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
	_, err := b.duesday(ctx, "import", file)
	return cmp.Or(err, os.RemoveAll(filepath.Join(b.folder, "duesday-data")))
}

// duesday runs a command of the product in the folder, and returns its JSON.
func (b *benchmark) duesday(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, b.product, append(args, "--json")...)
	c.Dir = b.folder
	out, err := c.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w: %s%.2000s", args[0], err, e.Stderr, out)
	}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.peakMemory = max(b.peakMemory, u.Maxrss<<10) // kilobytes on Linux
	}
	return out, err
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

// writeBook writes a file to import: realistic rows, each with the payment day and the first due date that
// next returns.
func writeBook(file string, n int, next func(i int) (day int, date string)) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprintln(w, "account,email,subscription,sku,amount,currency,payment_day,next_payment_date,payment_method,address")
	for i := range n {
		id := consumption.Scatter(i)
		day, date := next(i)
		fmt.Fprintf(w, "acct_%010d,customer.%d@example.com,sub_%010d,plan-%03d,%d.99,USD,%d,%s,pm_card_visa,\"%d Bridge "+
			"Street, Birmingham, B12 7ST, United Kingdom\"\n",
			id, id, id, i%200, 5+i%50, day, date, i%900+1)
	}
	return errors.Join(w.Flush(), f.Close())
}
