package dynamotable

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// Settings of a table beside its keys and indexes. The zero value is on demand and unprotected.
type Settings struct {
	Provisioned         *Provisioned // nil: on demand
	DeletionProtection  bool         // DynamoDB refuses to delete the table until it is switched off
	PointInTimeRecovery bool         // continuous backups, restorable to any second of the last 35 days
}

// Provisioned is capacity in units a second, of a table and of each index, paid for used or not.
type Provisioned struct{ ReadUnits, WriteUnits int64 }

// DefaultProvisioned returns the capacity of the published model.
func DefaultProvisioned() Provisioned { return Provisioned{ReadUnits: 5, WriteUnits: 5} }

// Input returns the complete request that creates the table. All key attributes are strings.
//
// A projection is sent as it was declared. It may name the table's own keys, as in the
// published model: DynamoDB projects them in any case, accepts them in the list, and may
// leave them out of its description. The index's own keys are not sent.
func Input(table store.Table, s Settings) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:                 &table.Name,
		KeySchema:                 keySchema(table.PartitionKey, table.SortKey),
		BillingMode:               types.BillingModePayPerRequest,
		DeletionProtectionEnabled: aws.Bool(s.DeletionProtection),
	}
	if s.Provisioned != nil {
		in.BillingMode = types.BillingModeProvisioned
		in.ProvisionedThroughput = s.Provisioned.throughput()
	}
	for i := range table.Indexes {
		x := &table.Indexes[i]
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{IndexName: &x.Name,
			KeySchema: keySchema(x.PartitionKey, x.SortKey), Projection: projection(x),
			ProvisionedThroughput: in.ProvisionedThroughput})
	}
	for _, name := range table.KeyNames() {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

func (p *Provisioned) throughput() *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: &p.ReadUnits, WriteCapacityUnits: &p.WriteUnits}
}

func keySchema(partition, sort string) []types.KeySchemaElement {
	keys := []types.KeySchemaElement{{AttributeName: &partition, KeyType: types.KeyTypeHash}}
	if sort != "" {
		keys = append(keys, types.KeySchemaElement{AttributeName: &sort, KeyType: types.KeyTypeRange})
	}
	return keys
}

func projection(x *store.Index) *types.Projection {
	if x.All {
		return &types.Projection{ProjectionType: types.ProjectionTypeAll}
	}
	var list []string
	for _, name := range x.Include {
		if name != x.PartitionKey && name != x.SortKey && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: list}
}
