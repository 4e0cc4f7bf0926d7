// Package metering counts the read and write units that DynamoDB would consume by its documented
// rules. It has pure functions over sizes, items and tables (rules.go), and a Meter that
// counts the calls to a store (meter.go).
//
// It does not talk to DynamoDB, knows nothing of payments, and turns no unit into money:
// prices differ by region and change.
//
// # Sources
//
// Single writes and reads are held to DynamoDB Local by a test. The rest is the developer
// guide's, and where that is silent, others' measurements on the real service:
//
//   - "DynamoDB performs two underlying reads or writes of every item in the transaction: one
//     to prepare the transaction and one to commit the transaction" (Capacity management for
//     transactions). So a write in a transaction costs twice. DynamoDB Local says otherwise.
//   - "Changes made with transactions are propagated to global secondary indexes (GSIs) …
//     eventually, after the transaction completes" (TransactWriteItems API). So an index row costs
//     as much as outside a transaction: measured on the real service (dynoxide, pull request 188).
//   - A check in a transaction writes nothing and is charged like a write of the checked item,
//     twice (the same measurements, and dynamodb-conformance, pull request 67).
//   - "If a ConditionExpression evaluates to false during a conditional write, DynamoDB still
//     consumes write capacity from the table", by the size of the item (Read and
//     write operations). Neither the service nor Local reports such units.
//
// # Open questions
//
//   - The consumption of a cancelled transaction is not documented, and not in its answer.
//     All its table writes are counted, twice each, and no index write: the most it can be.
//   - The size of a number is documented as approximate. The count follows DynamoDB Local.
//   - Expired items are read, and paid for, until DynamoDB has deleted them; the deletion
//     itself is free. The engine hides them from the Meter, so it leaves them out.
package metering
