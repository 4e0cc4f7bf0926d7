// Package consumption measures what the engine consumes on DynamoDB.
//
// It runs the engine over a store in memory and counts read and write units by the rules of
// package metering. The figures do not depend on the machine: the same book always gives the
// same. It does not talk to AWS. The table of package capacity is held to these figures.
package consumption
