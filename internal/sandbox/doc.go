// Package sandbox implements a built-in payment processor that moves no money, for trials and tests. It
// behaves like Stripe wherever the charge protocol depends on it: an intent succeeds at most once,
// idempotency keys expire after a day, and replies can get lost. Tests and audits compare the store with
// its ledger.
//
// It sends no webhooks and has no customers. Only tests create disputes. It does not know the
// store. The ledger lives outside the store's folder, so that restoring or losing one does not
// change the other.
//
// # The ledger
//
// With a file, the ledger is append-only JSON lines, which docs/internals/stripe.md describes. The
// sandbox syncs a line to disk before it answers, so no answer shows a state whose line could be
// lost. Lines that the sandbox writes also contain install, key, method, charge, code and hard,
// from which it rebuilds its state. Lines with only the documented fields may be added by hand
// while the file is closed. Without a file the ledger is in memory.
//
// # Several processes of one user
//
// Any number of processes may have the file open. Each call locks the file for a moment, reads what
// other processes have appended, and appends its own line. Each process uses its own clock, faults
// and latency.
//
//   - A process is killed: the kernel gives its lock back. A line that it has appended whole counts,
//     and a torn one is removed. To its caller the outcome is unknown, so a look-up tells.
//   - A process stands still while it has the lock, as after Ctrl-Z: the calls of the others fail
//     with ErrNotExecuted after 10 seconds.
//   - The file is another user's: Open refuses it. Root may not make one in another user's folder.
package sandbox
