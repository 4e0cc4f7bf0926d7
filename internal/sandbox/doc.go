// Package sandbox is the built-in payment processor: a stateful stand-in that behaves
// like the real one at every point the charge protocol leans on (an intent succeeds at
// most once, idempotency keys are forgotten after a day, answers get lost), and whose
// ledger is the truth that tests and audits hold the store against.
//
// It moves no money, sends no webhooks and knows no customers. Disputes are made by tests
// alone. It knows nothing of the store: its ledger lives outside the store's folder, so that
// restoring or losing the one leaves the other as it was.
//
// # The ledger
//
// With a file, the ledger is append-only JSON lines, one for every answer given to
// something new. A replay by idempotency key, a lookup, a list, and a confirm or cancel
// that finds nothing left to do write no line. A line is on disk, synced, before its
// answer is given, and no answer shows a state whose line is not. The fields are ref,
// account, subscription, sku, period, generation, attempt, amount, currency, outcome and
// at; lines written here also carry install, key, method, charge, code and hard, from
// which the state is rebuilt. Lines with the eleven fields alone may be added by hand
// while the file is closed.
//
// A refund or dispute has lines of its own, one for each state it comes into: ref is its own
// id, of the intent's, and outcome one of refunded, refund_pending, refund_failed,
// refund_canceled, disputed, dispute_lost, dispute_won and dispute_closed; request and reason
// say more. What is told of the intent stays as it is, and Entries leaves these lines out. A
// program of before there were refunds refuses a file with such a line, and names it.
//
// The file is locked while it is open. Without a file the ledger is in memory and ends with
// the process.
//
// # Several processes
//
// One process has the ledger open. Others use it through that one: Serve and Handler give
// it to the network, and a Client is a processor like the Sandbox itself. Faults, latency
// and the clock are the server's. It asks nobody who he is: whoever reaches the address can
// use it, and no more than test money is behind it.
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
// {"error":{"code","message"}}, which may also be the last line of a list. The codes are unknown, not_executed, invalid,
// refused, account_refused and no_intent, for the errors of package billing; anything else
// that a Client gets back, or nothing, is billing.ErrUnknown to it.
//
// # What is not in the ledger
//
// Keys under which a cached failure is replayed (Options.CachedRate) are forgotten when
// the sandbox closes: nothing was done under them.
package sandbox
