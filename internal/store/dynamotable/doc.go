// Package dynamotable creates, describes, compares and drops DynamoDB tables, with their keys,
// indexes, TTL, billing mode, deletion protection and point-in-time recovery. Package
// cloudformation configures autoscaling.
//
// It is for operators' commands. All of its requests are control-plane requests, and an interrupted
// operation can be repeated. It does not read or write items.
//
//   - input.go: the request that creates a table
//   - describe.go, compare.go: the state of a table, and its differences from the declaration
//   - create.go: creating and changing tables
//   - drop.go: dropping tables
package dynamotable
