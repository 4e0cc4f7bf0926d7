// Package worker prevents workers from doing the same work twice, with claims for job runs, leases
// for the partitions of a run that several processes share, and locks for the goroutines of one
// process.
//
// It does not prevent a period from being charged twice: billing.Records.Put, which checks the
// subscription's version, and the charge protocol of package engine do.
package worker
