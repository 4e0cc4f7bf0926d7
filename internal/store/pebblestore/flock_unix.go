//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pebblestore

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// flock locks the folder itself, not a file in it: removing or renaming files unlocks nothing. It
// returns errFlocked if another descriptor has it. Where the file system has no such locks, as over
// some networks, it returns nil, and Pebble's lock on the file LOCK decides alone.
func flock(path string) (io.Closer, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return d, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errFlocked, d.Close())
	}
	return nil, d.Close()
}
