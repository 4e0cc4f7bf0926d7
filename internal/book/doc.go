// Package book reads a book of subscriptions from a file (CSV with a header, JSON
// lines, a NoSQL Workbench model with sample data, or the CSV of such data) and writes
// books back.
//
// It checks everything that can be known from the file alone: the form of every field,
// the rules of billing.NewSubscription, and that rows do not contradict each other. It
// reports every bad column of every bad row, and never shows a card number: what looks
// like one is refused, and masked wherever the row's text goes.
//
// It does not know the store, so it cannot say what exists already, nor what day it is,
// so it cannot say what is due. It decides nothing about a file with bad rows: the
// caller reads it to the end before it believes any of it.
//
// # Where things are
//
//   - format.go: the four formats and how they are told apart
//   - record.go: what Read yields
//   - column.go, row.go, field.go, ledger.go: one row against the rules, and against the rows before it
//   - csv.go, jsonl.go, workbench.go, sample.go, item.go, entity.go: the formats
//   - source.go, object.go: bytes with line numbers, one flat JSON object
//   - rejected.go, writer.go: FILE.rejected, and exports
//
// A million rows need at most 90 MB for the check against each other, and nothing else
// that grows with the file.
package book
