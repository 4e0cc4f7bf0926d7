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
// With a file, the ledger is append-only JSON lines, one for every answer to something new. A
// replay by idempotency key, a lookup, a list, and a confirm or cancel without effect write no
// line. A line is synced to disk before its answer is given, and no answer shows a state without
// its line on disk. The fields are ref, account, subscription, sku, period, generation, attempt,
// amount, currency, outcome and at. Lines written here also carry install, key, method, charge,
// code and hard, from which the state is rebuilt. Lines with the eleven fields alone may be added
// by hand while the file is closed.
//
// A refund or dispute has a line for each state it comes into: ref is its own id, and of the
// intent's. Its outcome is refunded, refund_pending, refund_failed, refund_canceled, disputed,
// dispute_lost, dispute_won or dispute_closed; request and reason say more. It does not change the
// intent's own lines, and Entries leaves it out. A program older than refunds refuses a file with
// such a line, and names it.
//
// The file is locked while it is open. Without a file the ledger is in memory and ends with the
// process.
//
// # Several processes
//
// One process has the ledger open. Others use it through that process: Serve and Handler serve it,
// and a Client is a processor like the Sandbox itself. Faults, latency and the clock are the
// server's. It authenticates no caller, and there is only test money behind it.
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
//	GET  /v1/entries              the auditor's view: the lines of the ledger, without keys
//
// An answer is {"intent":{…}} or {"return":{…}}, in the fields of a line, or
// {"error":{"code","message"}}, which may also be the last line of a list. The codes are unknown,
// not_executed, invalid, refused, account_refused and no_intent, for the errors of package billing.
// To a Client any other answer, or none, is billing.ErrUnknown.
//
// # Not in the ledger
//
// Keys that replay a cached failure (Options.CachedRate) are forgotten when the sandbox closes:
// nothing was done under them.
package sandbox
