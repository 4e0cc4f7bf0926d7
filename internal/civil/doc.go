// Package civil provides calendar dates, and computes due dates from an anchor date and an interval.
//
// A [Date] is a day on a wall calendar: it has no time of day and no zone. A [Schedule] computes
// the due date of period n only from its anchor and n, so a short month never affects the dates
// after it. Only [Zone], [Today] and [Date.In] convert between dates and instants.
//
// The package does not know what time it is (callers pass the instant), does
// not know about holidays or business days, and has no daily interval. It does
// no I/O, except that [Zone] may read the system's zone database once per name.
package civil
