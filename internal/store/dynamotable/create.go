package dynamotable

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// Progress is called for each step on a table, and also while Create waits. It may be nil.
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
// nothing was changed, unless that table appeared meanwhile. Bad declarations are store.ErrInvalid.
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

func (s Settings) check() error {
	if p := s.Provisioned; p != nil && (p.ReadUnits < 1 || p.WriteUnits < 1) {
		return fmt.Errorf("provisioned capacity must be 1 or more units (got %d read and %d write)", p.ReadUnits, p.WriteUnits)
	}
	return nil
}

// usable refuses tables in a state that does not lead to ACTIVE.
func usable(found ...Description) error {
	for i := range found {
		switch d := &found[i]; types.TableStatus(d.Status) {
		case "", types.TableStatusActive, types.TableStatusCreating, types.TableStatusUpdating:
		case types.TableStatusDeleting:
			return fmt.Errorf("table %s is being deleted; run this again when it is gone", d.Table.Name)
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
	if is[*types.ResourceInUseException](err) {
		m.progress.say(t.Name, "another process is creating it")
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating table %s: %w", t.Name, err)
	}
	return true, nil
}

// ttl switches TTL on. TTL on another attribute is a difference, refused before.
func (m *maker) ttl(ctx context.Context, t store.Table, d Description) error {
	if t.TTL == "" || d.Table.TTL == t.TTL {
		return nil
	}
	_, err := m.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &t.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)}}, patient)
	if err != nil { // it is on already when the reply was lost or another one was faster
		if now, lerr := lookAt(ctx, m.client, t.Name); lerr != nil || now.Table.TTL != t.TTL {
			return fmt.Errorf("enabling TTL for table %s (DynamoDB allows one change an hour; TTL is %s): %w", t.Name,
				cmp.Or(d.TTLStatus, "unknown"), err)
		}
	}
	m.progress.say(t.Name, "TTL on, attribute %s", t.TTL)
	return nil
}

// protect switches deletion protection on where the table was not created with it.
func (m *maker) protect(ctx context.Context, t store.Table, d Description) error {
	if !m.settings.DeletionProtection {
		return nil
	}
	if !d.DeletionProtection {
		if err := m.update(ctx, &dynamodb.UpdateTableInput{TableName: &t.Name,
			DeletionProtectionEnabled: aws.Bool(true)}); err != nil {
			return fmt.Errorf("enabling deletion protection for table %s: %w", t.Name, err)
		}
	}
	m.progress.say(t.Name, "deletion protection on")
	return nil
}

// provision makes an on-demand table a provisioned one. It leaves the units of an already
// provisioned table: an operator or autoscaling has set them.
func (m *maker) provision(ctx context.Context, t store.Table, d Description) error {
	p := m.settings.Provisioned
	if p == nil {
		return nil
	}
	if d.OnDemand {
		in := &dynamodb.UpdateTableInput{TableName: &t.Name, BillingMode: types.BillingModeProvisioned,
			ProvisionedThroughput: p.throughput()}
		for i := range d.Table.Indexes { // undeclared ones too: each needs units
			in.GlobalSecondaryIndexUpdates = append(in.GlobalSecondaryIndexUpdates, types.GlobalSecondaryIndexUpdate{
				Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: &d.Table.Indexes[i].Name,
					ProvisionedThroughput: p.throughput()}})
		}
		if err := m.update(ctx, in); err != nil {
			return fmt.Errorf("provisioning capacity for table %s: %w", t.Name, err)
		}
		d.ReadUnits, d.WriteUnits = p.ReadUnits, p.WriteUnits
	}
	m.progress.say(t.Name, "provisioned: %d read and %d write units", d.ReadUnits, d.WriteUnits)
	return nil
}

// update changes the table when nothing else is being changed, and waits for it.
func (m *maker) update(ctx context.Context, in *dynamodb.UpdateTableInput) error {
	err := persist(ctx, func() error {
		_, err := m.client.UpdateTable(ctx, in, patient)
		return err
	}, is[*types.ResourceInUseException])
	if err == nil {
		_, err = m.active(ctx, *in.TableName)
	}
	return err
}

func (m *maker) recovery(ctx context.Context, t store.Table, _ Description) error {
	if !m.settings.PointInTimeRecovery {
		return nil
	}
	state, err := recovery(ctx, m.client, t.Name)
	if err != nil {
		return err
	}
	if state != string(types.PointInTimeRecoveryStatusEnabled) {
		on := &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)}
		in := &dynamodb.UpdateContinuousBackupsInput{TableName: &t.Name, PointInTimeRecoverySpecification: on}
		// DynamoDB offers the backups of a new table only after some time.
		if err := persist(ctx, func() error {
			_, err := m.client.UpdateContinuousBackups(ctx, in, patient)
			return err
		}, func(err error) bool {
			return is[*types.ContinuousBackupsUnavailableException](err) || is[*types.TableNotFoundException](err)
		}); err != nil {
			return fmt.Errorf("enabling point-in-time recovery for table %s: %w", t.Name, err)
		}
	}
	m.progress.say(t.Name, "point-in-time recovery on")
	return nil
}

// canRecover refuses, before anything is created, an endpoint without point-in-time
// recovery: a requested protection must not be missing unnoticed.
func canRecover(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table}, patient)
	if code(err) == unknownOperation {
		return fmt.Errorf(
			"the endpoint %s does not support point-in-time recovery (DynamoDB Local has none)",
			cmp.Or(aws.ToString(client.Options().BaseEndpoint), "DynamoDB"))
	}
	return nil
}
