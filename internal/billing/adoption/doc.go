// Package adoption makes a table that other tools have filled from the published model ready
// for the daily jobs. It does not change any subscription: the first write of package engine
// completes it.
package adoption
