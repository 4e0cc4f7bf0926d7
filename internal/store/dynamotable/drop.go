package dynamotable

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// A ProtectedError names tables with deletion protection. Nothing was dropped.
type ProtectedError struct{ Tables []string }

func (e *ProtectedError) Error() string {
	return fmt.Sprintf("deletion protection is on for %s: nothing was dropped; switch it off first, "+
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
			progress.say(t.Name, "is not there")
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
