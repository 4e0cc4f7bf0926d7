// Package engine charges subscriptions: the charge protocol, and operators' requests. Package job runs it
// daily. It keeps the product's promise: at most one successful charge per subscription period,
// and every period ends paid, failed, void or visibly parked.
//
// It does not know the storage engine, the processor, the mail (see outbox) or the command line.
//
// # Where things are
//
//   - next.go: the decision of the charge protocol; execute.go carries it out
//   - intent.go, settle.go, retry.go: its actions; result.go: their results
//   - notice.go: reminders and the other notices; sums.go: the sums of money
//   - forecast.go: the results to come, for dry runs and reports
//   - request.go, chargeperiod.go: the requests of people; manual.go: payments taken outside
//   - reconcile.go: a store that went back in time
//   - cardupdate.go: payment methods, and how they change
package engine
