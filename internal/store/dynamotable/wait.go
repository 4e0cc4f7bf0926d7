package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	firstPause = 100 * time.Millisecond // between two looks at a table; each pause is twice the one before
	lastPause  = 5 * time.Second

	// maxUnseen is the most looks at a new table without finding it: descriptions lag behind.
	maxUnseen = 12
	// maxTries bounds the attempts at a change while another change is under way.
	maxTries = 12
)

// pause waits before look number n (from 0), or until ctx is done.
func pause(ctx context.Context, n int) error {
	t := time.NewTimer(min(firstPause<<min(n, 16), lastPause))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// persist calls again while the error is of a kind that passes, such as another change under way.
func persist(ctx context.Context, call func() error, passes func(error) bool) error {
	for n := 0; ; n++ {
		err := call()
		if err == nil || !passes(err) || n >= maxTries {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}

// is reports whether the error is one of the service's type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// active waits until the table and its indexes are active, and returns their description. Only
// ctx bounds the time.
func (m *maker) active(ctx context.Context, name string) (Description, error) {
	said := ""
	for n := 0; ; n++ {
		d, err := lookAt(ctx, m.client, name)
		if err == nil {
			err = usable(d)
		}
		if err != nil {
			return d, err
		}
		waits := waitsFor(&d)
		switch {
		case waits == "":
			return d, nil
		case d.Missing && n >= maxUnseen:
			return d, fmt.Errorf("table %s has disappeared", name)
		case waits != said:
			said = waits
			m.progress.say(name, "waiting: %s", waits)
		}
		if err := pause(ctx, n); err != nil {
			return d, fmt.Errorf("waiting for table %s, which is %s: %w", name, waits, err)
		}
	}
}

// waitsFor returns the state that keeps the table from being used, or "".
func waitsFor(d *Description) string {
	if d.Missing {
		return "not to be seen yet"
	}
	if d.Status != string(types.TableStatusActive) {
		return d.Status
	}
	for _, name := range slices.Sorted(maps.Keys(d.IndexStatus)) {
		if status := d.IndexStatus[name]; status != string(types.IndexStatusActive) {
			return "index " + name + " " + status
		}
	}
	return ""
}

// gone waits until there is no such table.
func gone(ctx context.Context, client *dynamodb.Client, name string) error {
	for n := 0; ; n++ {
		d, err := lookAt(ctx, client, name)
		if err != nil || d.Missing {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return fmt.Errorf("waiting until table %s is gone, which is %s: %w", name, d.Status, err)
		}
	}
}
