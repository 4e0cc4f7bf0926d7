package socket

import "syscall"

// CheckOwner leaves it to the system's rights, which know no uid.
func CheckOwner(string) error { return nil }

func keep(_, _ string, _ syscall.RawConn) error { return nil }
