// Package dynamotable makes, describes, compares and drops the DynamoDB tables of []store.Table:
// keys, indexes with their projections, TTL, the billing mode, deletion protection and
// point-in-time recovery. Autoscaling is package cloudformation's.
//
// It is for operators' commands: everything is a control-plane call, and may be run again after it
// was cut off. It does not read or write items, and knows nothing of their content.
//
//   - input.go: the request that creates a table
//   - describe.go, compare.go: the state of a table, and its differences from the declaration
//   - create.go: making it so
//   - drop.go: taking it away
package dynamotable
