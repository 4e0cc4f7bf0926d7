package status

import "errors"

// Disk returns errors.ErrUnsupported.
func Disk(string) (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
