// Package mail turns effects into mail that customers read, and hands it over: each
// message becomes one .eml file in a folder, for a mail server or a person to pick up.
//
// One effect is always one and the same message, byte for byte, with one Message-ID
// and one file name: delivered twice, it replaces itself. Nothing that an effect says
// can become a header, a second recipient or a path.
//
// It does not decide who gets mail, when, or whether it is still wanted (package
// billing does, through package outbox), it formats no amounts, and it does not send:
// there is no SMTP in it yet.
package mail
