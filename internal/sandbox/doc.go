// Package sandbox is the built-in payment processor. It behaves like the real one at every point
// that the charge protocol relies on: an intent succeeds at most once, idempotency keys are
// forgotten after a day, answers get lost. Tests and audits compare the store with its ledger.
//
// It moves no money, sends no webhooks and knows no customers. Only tests make disputes. It knows
// nothing of the store. The ledger lives outside the store's folder, so that restoring or losing
// one does not change the other.
//
// # The ledger
//
// With a file, the ledger is append-only JSON lines, in the form of section 15 of docs/design.md. A
// line is synced to disk before its answer is given, and no answer shows a state without its line on
// disk. Lines written here also carry install, key, method, charge, code and hard, from which the
// state is rebuilt. Lines with the documented fields alone may be added by hand while the file is
// closed. Without a file the ledger is in memory.
//
// # Several processes of one user
//
// Share opens a file for any number of processes. The one that has locked it, its holder, serves the
// others on a Unix socket beside it, FILE.sock, and names itself and the socket in FILE.holder. Both
// lie beside the file without symbolic links, and are gone when nobody has the file. The clock is
// the holder's. All processes have the same version of Duesday and the same parameters, so that the
// next holder behaves as the last one did: another process is refused.
//
//   - The holder ends in order: no call fails, and lists go on at the next holder.
//   - The holder is killed: a change without an answer is ErrUnknown and names the holder. The line
//     of a success is on disk or was never there, so a look-up at the next holder tells. Reading
//     calls go on there.
//   - The holder stands still, as after Ctrl-Z: within 10 seconds its clients' calls fail and name
//     it. A change that was sent is ErrUnknown. What is sent later is ErrNotExecuted.
//   - A client stands still or is killed: what it has sent whole is carried out. A holder that ends
//     waits a second for it.
//   - The file is another user's: refused. So is root, before it makes one in another's folder.
//
// # A server for others
//
// Processes of other users or machines use the ledger through a server, as a holder's clients do.
// Faults, latency and the clock are the server's. It authenticates no caller, and there is only test
// money behind it.
//
//	POST /v1/open                 {"key", "install", "account", "subscription", "sku", "period",
//	                              "generation", "amount", "currency", "method"}
//	POST /v1/confirm              {"key", "ref", "method", "attempt"}
//	POST /v1/cancel               {"ref"}
//	GET  /v1/intents/REF
//	GET  /v1/successes?since=AT   the processor's list, a line for each, then {"end":true}
//	POST /v1/refund               {"key", "id", "ref", "amount", "currency", "reason"}
//	GET  /v1/returns?since=AT     refunds and disputes, likewise
//	GET  /v1/returns/REF          those of one intent, likewise
//
// An answer is {"intent":{…}} or {"return":{…}}, in the fields of a line, or
// {"error":{"code","message"}}, which may also be the last line of a list. The codes are unknown,
// not_executed, invalid, refused, account_refused and no_intent, for the errors of package billing.
// To a Client any other answer, or none, is billing.ErrUnknown.
package sandbox
