package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// A Description is DynamoDB's description of a table.
type Description struct {
	Table   store.Table // its keys, indexes in order of their names, projections, and the TTL attribute while it is on
	Missing bool        // there is none; only Table.Name and Differences say something
	Status  string      // ACTIVE, CREATING, ...
	Types   []KeyType   // of all key attributes, by name

	IndexStatus map[string]string // by the index's name
	LocalIndex  []string          // names of local secondary indexes, which Duesday never declares

	Items, Bytes          int64 // as DynamoDB counted them, some six hours ago at most
	Created               time.Time
	OnDemand              bool
	ReadUnits, WriteUnits int64 // of the table, when it is provisioned

	TTLStatus           string // ENABLED, ENABLING, DISABLED, DISABLING
	PointInTimeRecovery string // ENABLED, DISABLED, UNKNOWN where the caller may not ask, "" where the endpoint has none
	DeletionProtection  bool

	Differences []Difference // from the declaration
}

// A KeyType is the type of a key attribute: S, N or B.
type KeyType struct{ Name, Type string }

// Describe returns the descriptions of the tables, in their order. A missing table is not an error.
func Describe(ctx context.Context, client *dynamodb.Client, tables []store.Table) ([]Description, error) {
	found, err := Look(ctx, client, tables)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if d := &found[i]; !d.Missing {
			if d.PointInTimeRecovery, err = recovery(ctx, client, d.Table.Name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Look is Describe without point-in-time recovery, which takes a call of its own and is not
// compared. It needs DescribeTable and DescribeTimeToLive alone.
func Look(ctx context.Context, client *dynamodb.Client, tables []store.Table) ([]Description, error) {
	found := make([]Description, len(tables))
	for i := range tables {
		d, err := lookAt(ctx, client, tables[i].Name)
		if err != nil {
			return nil, err
		}
		d.Differences = Compare(tables[i], d)
		found[i] = d
	}
	return found, nil
}

func lookAt(ctx context.Context, client *dynamodb.Client, name string) (Description, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name}, patient)
	if is[*types.ResourceNotFoundException](err) {
		return Description{Table: store.Table{Name: name}, Missing: true}, nil
	}
	if err != nil {
		return Description{}, fmt.Errorf("describing table %s: %w", name, err)
	}
	d := describe(name, out.Table)
	if d.Status == string(types.TableStatusCreating) || d.Status == string(types.TableStatusDeleting) {
		return d, nil // DescribeTimeToLive may still answer that there is no table
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name}, patient)
	if is[*types.ResourceNotFoundException](err) {
		return Description{Table: store.Table{Name: name}, Missing: true}, nil
	}
	if err != nil {
		return Description{}, fmt.Errorf("describing the TTL of table %s: %w", name, err)
	}
	if t := ttl.TimeToLiveDescription; t != nil {
		d.TTLStatus = string(t.TimeToLiveStatus)
		if t.TimeToLiveStatus == types.TimeToLiveStatusEnabled || t.TimeToLiveStatus == types.TimeToLiveStatusEnabling {
			d.Table.TTL = aws.ToString(t.AttributeName)
		}
	}
	return d, nil
}

func describe(name string, t *types.TableDescription) Description {
	d := Description{Table: store.Table{Name: name}, Status: string(t.TableStatus), Items: aws.ToInt64(t.ItemCount),
		Bytes: aws.ToInt64(t.TableSizeBytes), Created: aws.ToTime(t.CreationDateTime).UTC(),
		DeletionProtection: aws.ToBool(t.DeletionProtectionEnabled), IndexStatus: map[string]string{}}
	d.Table.PartitionKey, d.Table.SortKey = keysOf(t.KeySchema)
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
		d.OnDemand = true
	} else if p := t.ProvisionedThroughput; p != nil {
		d.ReadUnits, d.WriteUnits = aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
	}
	for _, a := range t.AttributeDefinitions {
		d.Types = append(d.Types, KeyType{aws.ToString(a.AttributeName), string(a.AttributeType)})
	}
	for _, g := range t.GlobalSecondaryIndexes {
		x := store.Index{Name: aws.ToString(g.IndexName)}
		x.PartitionKey, x.SortKey = keysOf(g.KeySchema)
		if g.Projection != nil {
			x.All = g.Projection.ProjectionType == types.ProjectionTypeAll
			x.Include = slices.Clone(g.Projection.NonKeyAttributes)
		}
		d.Table.Indexes = append(d.Table.Indexes, x)
		d.IndexStatus[x.Name] = string(g.IndexStatus)
	}
	for _, l := range t.LocalSecondaryIndexes {
		d.LocalIndex = append(d.LocalIndex, aws.ToString(l.IndexName))
	}
	slices.SortFunc(d.Table.Indexes, func(a, b store.Index) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Types, func(a, b KeyType) int { return strings.Compare(a.Name, b.Name) })
	return d
}

func keysOf(schema []types.KeySchemaElement) (partition, sort string) {
	for _, k := range schema {
		if k.KeyType == types.KeyTypeHash {
			partition = aws.ToString(k.AttributeName)
		} else {
			sort = aws.ToString(k.AttributeName)
		}
	}
	return partition, sort
}

// recovery returns Description.PointInTimeRecovery.
func recovery(ctx context.Context, client *dynamodb.Client, name string) (string, error) {
	out, err := client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &name}, patient)
	switch code(err) {
	case unknownOperation:
		return "", nil
	case accessDenied:
		return recoveryUnknown, nil
	}
	if err != nil {
		return "", fmt.Errorf("describing the backups of table %s: %w", name, err)
	}
	if c := out.ContinuousBackupsDescription; c != nil && c.PointInTimeRecoveryDescription != nil {
		return string(c.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus), nil
	}
	return string(types.PointInTimeRecoveryStatusDisabled), nil
}

// Codes of service errors without a type of their own.
const (
	unknownOperation = "UnknownOperationException"
	accessDenied     = "AccessDeniedException"
)

const recoveryUnknown = "UNKNOWN"

// Lacks returns what the tables lack, each in a sentence. A missing or unusable index hides
// payments that are due, other keys break every request, and without the TTL expired items stay and
// are paid for: these are wrong. Point-in-time recovery and deletion protection are the operator's
// choice, which no request needs: without them the data is weak. What the caller may not ask is
// unknown.
func Lacks(found []Description) (wrong, weak, unknown []string) {
	usable := []string{string(types.TableStatusActive), string(types.TableStatusUpdating)} // of an index, too
	unprotected, unrecoverable := 0, 0
	for i := range found {
		d, others := &found[i], map[string]bool{} // others: the parts that other tools have added
		for _, x := range d.Differences {
			if others[x.Part] = x.Harmless; !x.Harmless {
				wrong = append(wrong, x.String())
			}
		}
		if d.Missing {
			continue
		}
		if !slices.Contains(usable, d.Status) {
			wrong = append(wrong, fmt.Sprintf("table %s is %s", d.Table.Name, d.Status))
		}
		for _, x := range d.Table.Indexes {
			if status := d.IndexStatus[x.Name]; !slices.Contains(usable, status) && !others["index "+x.Name] {
				wrong = append(wrong, fmt.Sprintf("table %s: index %s is %s", d.Table.Name, x.Name, status))
			}
		}
		switch d.PointInTimeRecovery {
		case recoveryUnknown:
			unknown = []string{"point-in-time recovery may not be asked for"}
		case string(types.PointInTimeRecoveryStatusDisabled):
			unrecoverable++
		}
		if !d.DeletionProtection {
			unprotected++
		}
	}
	if unrecoverable > 0 {
		weak = append(weak, fmt.Sprintf("point-in-time recovery is off for %d of %d tables", unrecoverable, len(found)))
	}
	if unprotected > 0 {
		weak = append(weak, fmt.Sprintf("deletion protection is off for %d of %d tables", unprotected, len(found)))
	}
	return wrong, weak, unknown
}

func code(err error) string {
	if e, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// Denied reports whether the error is the service's AccessDeniedException.
func Denied(err error) bool { return code(err) == accessDenied }

// patient retries a request whatever the client does: all of this package may be repeated.
func patient(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 30 // about a minute: DynamoDB Local, when busy, fails changes of tables for longer than 20 s
		o.MaxBackoff = 2 * time.Second
	})
	// Without this the SDK warns of a wrong checksum on standard error at every error answer: it
	// does not read such an answer to its end.
	o.DisableValidateResponseChecksum = true
}
