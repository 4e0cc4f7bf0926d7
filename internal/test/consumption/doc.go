// Package consumption measures the DynamoDB units that the engine consumes.
//
// It runs the engine with a store in memory, and counts read and write units by the rules of package
// metering. The figures do not depend on the machine, only on the book. It does not call AWS. A test
// compares package capacity's table with these figures.
package consumption
