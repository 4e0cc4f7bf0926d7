package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
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
	return clock.Wait(ctx, min(firstPause<<min(n, 16), lastPause))
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

// active waits, as long as ctx, until the table and its indexes are active, and describes them.
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

func gone(ctx context.Context, client *dynamodb.Client, name string) error {
	for n := 0; ; n++ {
		d, err := lookAt(ctx, client, name)
		if err != nil || d.Missing {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return fmt.Errorf("waiting for the deletion of table %s, which is now %s: %w", name, d.Status, err)
		}
	}
}

// A ProtectedError names tables with deletion protection. Nothing was dropped.
type ProtectedError struct{ Tables []string }

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("deletion protection is on for %s, so nothing was dropped; switch it off first, "+
		"with aws dynamodb update-table --table-name %s --no-deletion-protection-enabled", strings.Join(e.Tables, ", "),
		e.Tables[0])
}

// Drop deletes the tables with their items, waits until they are gone, and returns the names of
// the dropped ones. A missing table is no error. If a table is protected (ProtectedError) or
// differs from its declaration (DifferentError), nothing is dropped. A further index counts as a
// difference here: another program uses the table.
func Drop(ctx context.Context, client *dynamodb.Client, tables []store.Table,
	progress Progress) (dropped []string, err error) {
	found, err := Look(ctx, client, tables)
	if err == nil {
		err = different(found, func(d Difference) bool { return !d.Mends })
	}
	if err != nil {
		return nil, err
	}
	var protected []string
	for i := range found {
		if found[i].DeletionProtection {
			protected = append(protected, tables[i].Name)
		}
	}
	if len(protected) > 0 {
		return nil, &ProtectedError{protected}
	}
	for i := range tables {
		t, d := &tables[i], &found[i]
		if d.Missing {
			progress.say(t.Name, "does not exist")
			continue
		}
		progress.say(t.Name, "dropping")
		if err := remove(ctx, client, t.Name); err != nil {
			return dropped, fmt.Errorf("dropping table %s: %w", t.Name, err)
		}
		dropped = append(dropped, t.Name)
		progress.say(t.Name, "gone")
	}
	return dropped, nil
}

// remove deletes one table, once nothing else is being done to it.
func remove(ctx context.Context, client *dynamodb.Client, name string) error {
	err := persist(ctx, func() error {
		_, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}, patient)
		switch {
		case is[*types.ResourceNotFoundException](err):
			return nil
		case is[*types.ResourceInUseException](err): // it is being created, changed or deleted
			now, lerr := lookAt(ctx, client, name)
			if lerr == nil && (now.Missing || now.Status == string(types.TableStatusDeleting)) {
				return nil
			}
		}
		return err
	}, is[*types.ResourceInUseException])
	if err != nil {
		return err
	}
	return gone(ctx, client, name)
}
