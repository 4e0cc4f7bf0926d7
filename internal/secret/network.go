package secret

import "slices"

// networks are the ranges of the card networks: the first four digits, and the numbers of
// digits. Sources: the networks' own pages, ISO/IEC 7812 and the test cards of processors.
var networks = [...]struct {
	low, high uint16
	lengths   []int
}{
	{4000, 4999, []int{13, 16, 19}},                 // Visa
	{5100, 5599, []int{16}},                         // Mastercard
	{2221, 2720, []int{16}},                         // Mastercard
	{3400, 3499, []int{15}},                         // American Express
	{3700, 3799, []int{15}},                         // American Express
	{6011, 6011, []int{16, 17, 18, 19}},             // Discover
	{6440, 6599, []int{16, 17, 18, 19}},             // Discover
	{3528, 3589, []int{16, 17, 18, 19}},             // JCB
	{3000, 3059, []int{14, 15, 16, 17, 18, 19}},     // Diners Club
	{3095, 3095, []int{14, 15, 16, 17, 18, 19}},     // Diners Club
	{3600, 3699, []int{14, 15, 16, 17, 18, 19}},     // Diners Club
	{3800, 3999, []int{14, 15, 16, 17, 18, 19}},     // Diners Club
	{6200, 6299, []int{16, 17, 18, 19}},             // UnionPay
	{8100, 8171, []int{16, 17, 18, 19}},             // UnionPay
	{5000, 5099, []int{13, 14, 15, 16, 17, 18, 19}}, // Maestro
	{5600, 5899, []int{13, 14, 15, 16, 17, 18, 19}}, // Maestro
	{6300, 6399, []int{16, 19}},                     // Maestro; of 18 digits they are .NET's timestamps
	{6700, 6799, []int{13, 14, 15, 16, 17, 18, 19}}, // Maestro
}

// isIssued reports whether a network issues cards with this prefix and length. There must be
// at least four digits.
func isIssued(digits []byte) bool {
	prefix := uint16(0)
	for _, d := range digits[:4] {
		prefix = 10*prefix + uint16(d)
	}
	for _, n := range networks {
		if prefix >= n.low && prefix <= n.high {
			return slices.Contains(n.lengths, len(digits))
		}
	}
	return false
}

// groupings are the usual ones, by digits in each group, beside fours and one unbroken run.
var groupings = [...][]int{
	{4, 6, 5},    // American Express
	{4, 6, 4},    // Diners Club
	{6, 10},      // UnionPay
	{6, 13},      // UnionPay
	{8, 8},       // Maestro
	{4, 4, 5},    // Maestro of 13 digits
	{4, 3, 3, 3}, // Visa of 13 digits
}

// isGrouped reports whether the groups are a usual grouping of a card number.
func isGrouped(groups []group) bool {
	if len(groups) == 1 || isInFours(groups) {
		return true
	}
	return slices.ContainsFunc(groupings[:], func(sizes []int) bool {
		return slices.EqualFunc(groups, sizes, func(g group, size int) bool { return g.n == size })
	})
}

// isInFours reports whether every group has four digits, or fewer in the last.
func isInFours(groups []group) bool {
	last := len(groups) - 1
	for _, g := range groups[:last] {
		if g.n != 4 {
			return false
		}
	}
	return groups[last].n <= 4
}

// luhn reports whether the last digit is the check digit of those before it (ISO/IEC 7812).
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += int(d)
	}
	return sum%10 == 0
}
