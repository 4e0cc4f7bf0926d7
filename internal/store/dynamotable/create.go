package dynamotable

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// Progress is called at each step for a table, also while it waits. It may be nil.
type Progress func(table, step string)

func (p Progress) say(table, format string, args ...any) {
	if p != nil {
		p(table, fmt.Sprintf(format, args...))
	}
}

// Create makes the missing tables and returns their names. It makes one at a time, as DynamoDB
// requires for tables with indexes. It waits until the table and its indexes are active, then
// switches TTL and the settings on.
//
// It may be run again: it completes an interrupted Create, and leaves existing tables as they
// are. Of two at once, each waits for the other's tables. It switches nothing off. It changes the
// billing mode of an existing table only from on demand to provisioned.
//
// The error is a DifferentError if an existing table has a difference that Refused names. Then
// nothing was created or changed, unless that table appeared meanwhile. An invalid declaration is
// store.ErrInvalid.
func Create(ctx context.Context, client *dynamodb.Client, tables []store.Table, s Settings,
	progress Progress) (made []string, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if _, err := store.NewSchema(tables...); err != nil {
		return nil, err
	}
	found, err := Look(ctx, client, tables)
	if err == nil {
		err = Refused(found...)
	}
	if err == nil {
		err = usable(found...)
	}
	if err == nil && s.PointInTimeRecovery && len(tables) > 0 {
		err = canRecover(ctx, client, tables[0].Name)
	}
	if err != nil {
		return nil, err
	}
	m := maker{client: client, settings: s, progress: progress}
	for i := range tables {
		ours, err := m.table(ctx, tables[i], found[i])
		if ours {
			made = append(made, tables[i].Name)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// Ensure makes the missing tables, on demand and unprotected, and reports whether
// it made any. Its errors are Create's.
func Ensure(ctx context.Context, client *dynamodb.Client, tables []store.Table) (made bool, err error) {
	names, err := Create(ctx, client, tables, Settings{}, nil)
	return len(names) > 0, err
}

// check refuses units below 1.
func (s Settings) check() error {
	p := s.Provisioned
	switch {
	case p == nil:
		return nil
	case p.ReadUnits < 1 || p.WriteUnits < 1:
		return fmt.Errorf("provisioned capacity of %d read and %d write units: want 1 or more", p.ReadUnits, p.WriteUnits)
	}
	return nil
}

// usable refuses tables in a state that does not lead to ACTIVE.
func usable(found ...Description) error {
	for i := range found {
		switch d := &found[i]; types.TableStatus(d.Status) {
		case "", types.TableStatusActive, types.TableStatusCreating, types.TableStatusUpdating:
		case types.TableStatusDeleting:
			return fmt.Errorf("table %s is being deleted: run this again when it is gone", d.Table.Name)
		default:
			return fmt.Errorf("table %s is %s and cannot be used", d.Table.Name, d.Status)
		}
	}
	return nil
}

// A maker carries out a Create.
type maker struct {
	client   *dynamodb.Client
	settings Settings
	progress Progress
}

// table makes one table or completes it, and reports whether it was made here.
func (m *maker) table(ctx context.Context, t store.Table, d Description) (ours bool, err error) {
	if d.Missing {
		if ours, err = m.create(ctx, t); err != nil {
			return ours, err
		}
	} else {
		m.progress.say(t.Name, "exists already")
	}
	if d, err = m.active(ctx, t.Name); err != nil {
		return ours, err
	}
	d.Differences = Compare(t, d) // another one may have made it
	if err := Refused(d); err != nil {
		return ours, err
	}
	if ours {
		m.progress.say(t.Name, "active")
	}
	for _, step := range [...]func(context.Context, store.Table, Description) error{m.ttl, m.protect, m.provision,
		m.recovery} {
		if err := step(ctx, t, d); err != nil {
			return ours, err
		}
	}
	return ours, nil
}

func (m *maker) create(ctx context.Context, t store.Table) (ours bool, err error) {
	m.progress.say(t.Name, "creating")
	_, err = m.client.CreateTable(ctx, Input(t, m.settings), patient)
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		m.progress.say(t.Name, "somebody else is creating it")
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating table %s: %w", t.Name, err)
	}
	return true, nil
}
