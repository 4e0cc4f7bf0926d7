// Package mail renders effects as mail messages for customers, in text and HTML, from templates in several
// languages. A Folder writes each message as one .eml file; package mail/smtp sends it.
//
// The same effect, settings and templates always produce the same message, byte for byte, with the
// same Message-ID and file name. A second delivery replaces the first file. No data of an effect can
// become a header, a second recipient, markup or a path.
//
// It does not choose recipients, times, or messages to drop: package billing does, through
// package outbox.
package mail
