// Package book reads a file of subscriptions (a book), and writes the bad rows to another file. The
// format is CSV with a header, JSON lines, or a NoSQL Workbench model with sample data or its CSV.
//
// It validates the form of every field, the rules of billing.NewSubscription, and the consistency
// of the rows, and reports every bad column of every bad row. It rejects anything that looks like a
// card number, and masks it in all output.
//
// It does not know the store or the date, so it cannot say which rows already exist or are due. The
// caller must read the file to its end, and decide about bad rows, before it relies on any row.
//
// # Files
//
//   - format.go: the four formats, how Detect tells them apart, and bytes with line numbers
//   - record.go: the results of Read, and FILE.rejected
//   - column.go, row.go: one row by the rules, and beside earlier rows
//   - csv.go, jsonl.go, workbench.go, item.go: the formats
//
// To compare rows, the package needs up to 100 bytes of memory per row, and 50 more for the columns
// about the customer. Its other memory does not grow with the file.
package book
