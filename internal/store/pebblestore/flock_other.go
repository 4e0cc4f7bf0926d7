//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pebblestore

import "io"

// flock leaves it to Pebble's lock on the file LOCK.
func flock(string) (io.Closer, error) { return nil, nil }
