package dynamotable

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// ttl switches TTL on. TTL on another attribute is a difference, refused before.
func (m *maker) ttl(ctx context.Context, t store.Table, d Description) error {
	if t.TTL == "" || d.Table.TTL == t.TTL {
		return nil
	}
	_, err := m.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &t.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)}}, patient)
	if err != nil { // it is on already when the reply was lost or another one was faster
		if now, lerr := lookAt(ctx, m.client, t.Name); lerr != nil || now.Table.TTL != t.TTL {
			return fmt.Errorf("switching TTL on for table %s (it can be switched once an hour; it is %s): %w", t.Name,
				orElse(d.TTLStatus, "unknown"), err)
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
			return fmt.Errorf("switching deletion protection on for table %s: %w", t.Name, err)
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
	for n := 0; ; n++ {
		_, err := m.client.UpdateTable(ctx, in, patient)
		if err == nil {
			_, err = m.active(ctx, *in.TableName)
			return err
		}
		if _, busy := errors.AsType[*types.ResourceInUseException](err); !busy || n >= maxTries {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}

// recovery switches point-in-time recovery on.
func (m *maker) recovery(ctx context.Context, t store.Table, _ Description) error {
	if !m.settings.PointInTimeRecovery {
		return nil
	}
	state, err := recovery(ctx, m.client, t.Name)
	if err != nil {
		return err
	}
	if state != string(types.PointInTimeRecoveryStatusEnabled) {
		if err := m.startRecovery(ctx, t.Name); err != nil {
			return fmt.Errorf("switching point-in-time recovery on for table %s: %w", t.Name, err)
		}
	}
	m.progress.say(t.Name, "point-in-time recovery on")
	return nil
}

// startRecovery tries for a while: the backups of a new table are not to be had at once.
func (m *maker) startRecovery(ctx context.Context, name string) error {
	for n := 0; ; n++ {
		on := &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)}
		in := &dynamodb.UpdateContinuousBackupsInput{TableName: &name, PointInTimeRecoverySpecification: on}
		_, err := m.client.UpdateContinuousBackups(ctx, in, patient)
		_, early := errors.AsType[*types.ContinuousBackupsUnavailableException](err)
		_, unseen := errors.AsType[*types.TableNotFoundException](err)
		if (!early && !unseen) || n >= maxTries {
			return err
		}
		if err := pause(ctx, n); err != nil {
			return err
		}
	}
}

// canRecover refuses, before anything is created, an endpoint without point-in-time
// recovery: a requested protection must not be missing unnoticed.
func canRecover(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table}, patient)
	if code(err) == unknownOperation {
		return fmt.Errorf(
			"point-in-time recovery cannot be had at %s: this endpoint knows no such thing, as DynamoDB Local does not",
			endpoint(client))
	}
	return nil
}

// endpoint names the place the client talks to.
func endpoint(client *dynamodb.Client) string {
	return orElse(aws.ToString(client.Options().BaseEndpoint), "DynamoDB")
}
