// Package refund gives money back, and records the refunds and disputes that the processor
// shows. It does not charge: package engine does.
package refund
