// Package recipient answers what the delivery of a mail asks about its customer: the language and the name,
// the card link, the overdue periods, and whether the mail is still wanted.
//
// It does not send mail, and decides nothing about charges.
package recipient
