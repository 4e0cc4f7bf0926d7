package pages

// Patterns returns the paths of all pages, lists and actions.
func Patterns() (list []string) {
	for _, p := range all() {
		list = append(list, p.path)
	}
	for _, l := range lists() {
		list = append(list, "/"+l.name)
	}
	for _, a := range actions() {
		list = append(list, a.path())
	}
	return append(list, "/search?q=x")
}

// CheckPages returns the check, the text and the path of each page that helps with a check.
func CheckPages() (list [][3]string) {
	for _, p := range checkPages {
		list = append(list, [3]string{p.check, p.found, p.path})
	}
	return list
}

// OwnFields are the names that the pages add to the API's objects.
const OwnFields = "about account action allowed back before cards changed charging charts checks choose columns command confirm data delivery " +
	"done empty ended event expected filtered filters first found history if key kind label link list mails merchants name names " +
	"next number object offered offers open outlook overview parked past p past_due path payment payment_day period periods plan " +
	"previewed problem processor proof purchase q query receipts recurring refunds refused rows run runs settings status steps " +
	"subscription subscriptions timeline title tried unpaid values version waiting what wrong x"
