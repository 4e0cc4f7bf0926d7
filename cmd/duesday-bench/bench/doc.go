// Package bench compares Duesday's performance with that of a bare Pebble, tuned like the embedded
// engine. The bare side commits the same bytes for a payment run (W1) and for webhooks (W2), lists due
// rows (W3), and imports (W4). Both sides take turns in one process on one disk, so only their ratio is
// meaningful.
//
// The bare side checks no conditions and decodes no items. The package does not judge the figures, and
// prints nothing.
package bench
