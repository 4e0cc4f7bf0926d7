// Package book reads a file of subscriptions (a book), and writes the bad rows to another file. The
// format is CSV with a header, JSON lines, or a NoSQL Workbench model with sample data or its CSV.
//
// It checks a file by itself: the form of every field, the rules of billing.NewSubscription, and
// contradictions between rows. It reports every bad column of every bad row. It refuses anything
// like a card number, and masks it wherever the row's text goes.
//
// It does not know the store, nor the day: it cannot say which rows exist already or are due. The
// caller must read the file to its end, and decides about bad rows, before it relies on any row.
//
// # Files
//
//   - format.go: the four formats, how Detect tells them apart, and bytes with line numbers
//   - record.go: the results of Read, and FILE.rejected
//   - column.go, row.go: one row by the rules, and beside earlier rows
//   - csv.go, jsonl.go, workbench.go, item.go: the formats
//
// The comparison of rows needs up to 100 bytes a row, and 50 more for what it says of its customer.
// Nothing else grows with the file.
package book
