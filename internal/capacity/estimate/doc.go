// Package estimate measures the engine's consumption on DynamoDB and computes the units, hours
// and shards of a book's peak day.
//
// It runs the engine over a store in memory and counts read and write units by the rules of
// package capacity. The figures do not depend on the machine: the same book always gives the
// same. It asks nothing of AWS, and knows the on-demand prices of one region.
package estimate
