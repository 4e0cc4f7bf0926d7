// Package bench measures Duesday against a bare Pebble, tuned like the embedded engine,
// that commits the fixed bytes of a payment run (W1), lists what is due (W3) and imports
// (W4). Both sides run in turn, in one process on one disk, and only their ratio is worth
// quoting.
//
// It also counts, on the engine over a store in memory, the read and write units that everything
// would consume on DynamoDB (units.go), and what a peak day asks of them (peak.go). Those are
// figures of no machine: the same book always gives the same.
//
// The bare side checks no condition, decodes no item and knows no payment; that is the
// point. The package does not decide what is fast enough, and prints nothing.
package bench
