// Package mail turns effects into messages for customers. It writes each message as one .eml
// file into a folder, for a mail server or a person to pick up.
//
// An effect always becomes the same message, byte for byte, with the same Message-ID and file
// name. A second delivery replaces the first file. No data of an effect can become a header, a
// second recipient or a path.
//
// It does not choose recipients, times, or messages to drop: package billing does, through
// package outbox. It formats no amounts and sends nothing: there is no SMTP in it yet.
package mail
