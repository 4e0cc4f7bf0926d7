package book

import "strings"

// A column is a column of a CSV header, or a member of a JSON line.
type column uint8

const (
	account column = iota
	email
	subscription
	sku
	amount
	currency
	paymentDay
	paymentMethod
	startDate
	nextPaymentDate
	interval
	timeZone
	reminderDays
	installments
	address
	columns // their number
)

// required is the first column that may be absent. A row without a payment method is charged with
// its account's.
const required = paymentMethod

// columnNames are the columns by their names in a header.
var columnNames = [columns]string{
	"account", "email", "subscription", "sku", "amount", "currency", "payment_day", "payment_method",
	"start_date", "next_payment_date", "interval", "time_zone", "reminder_days", "installments", "address",
}

// The columns of FILE.rejected before the row's own. Read skips them, so the file can be corrected
// and imported as it is.
const (
	rejectedLine   = "rejected_line"
	rejectedColumn = "rejected_column"
	rejectedReason = "rejected_reason"
)

// ignored stands for a skipped column.
const ignored = columns

// A columnSet is a set of columns, with ignored.
type columnSet [columns + 1]bool

// Columns returns the names of all columns, the seven required ones first.
func Columns() []string { return append([]string(nil), columnNames[:]...) }

func columnNamed(name string) (c column, ok bool) {
	for i, n := range columnNames {
		if n == name {
			return column(i), true
		}
	}
	if name == rejectedLine || name == rejectedColumn || name == rejectedReason {
		return ignored, true
	}
	return 0, false
}

func unknownColumn(name string) problem {
	return problem{name, "is not a column of a book; the columns are " + strings.Join(columnNames[:], ", ")}
}
