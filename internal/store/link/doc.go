// Package link implements the protocol through which many processes use one embedded store. The process
// that holds the store, the holder, serves package store's interface on connections. Every other process
// is a client, which gets a store.Store. The package does not know folders, locks or sockets: package
// folder finds the holder.
//
// # Protocol
//
// Both sides send frames: length, request, kind and body. The client's first frame is its greeting,
// with its version of Duesday, a digest of its tables and names, and its test clock. The holder
// refuses a client with another version or digest, because the two would read items differently, and
// a client with another clock. It answers with its own clock. Then the client sends any number of
// requests at a time, and the holder answers them in any order. Queries are sent page by page, so a
// reader that stops in the middle of a list blocks nothing.
//
// # Failures
//
//   - The connection breaks, or the holder ends: a commit without an answer is ErrUnknown, since it
//     may have landed; so is a checkpoint, of which a part may be there. A read, and every later call,
//     is ErrLost, and nothing was written.
//   - The holder stands still, as after Ctrl-Z: it sends a beat each second otherwise. After
//     Silence without one the client gives the connection up, as above.
//   - The holder beats and takes no requests: after Silence the client gives the connection up too.
//   - The client stands still: the holder closes a connection that takes no answer for Silence.
//   - The client ends in the middle of a commit: a commit that has come whole is carried out.
//   - The holder closes its store: the client gets ErrClosed, and nothing was written.
//   - The connection ends for any reason: the client's claims end with it. The client learns of it,
//     and may claim the names again at the next holder, as may every other client.
//   - A frame that is no frame, or is too long: the connection ends. Neither side panics.
package link
