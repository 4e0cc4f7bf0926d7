// Package session is one invocation of the command: its settings, clock and log, the store, engine,
// processor and mail that it opens (need by need), and the builders, flags and hints that commands of every
// family use.
//
// It does not know any command, and decides nothing about money.
package session
