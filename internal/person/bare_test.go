package person

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// kept contains billing's attributes that an erasure keeps: amounts, dates, IDs, states and the store's own texts, parts
// of which bare removes, and the attributes of items that are about no person.
const kept = `
Accepted Account Actor After AgendaDate AlteredDate Amount Amounts Anchor AnchorPeriod ApplicationFee AskedDate
Attempt Attempts Base Before CancelAtEnd CancelDate CausesDate Changes Charge Charging ChargingOff ClockDate Code
Collect CollectUntil CollectionMethod Completed Counts CreatedDate Currency Customer Data DeadDate Declined DeclinedSum DueBefore
DueDate EndedDate ErasedDate ExpiresDate FailingDate FallbackCard FallbackFor FirstDecline Format FromDate Generation
HeartbeatDate Installation Installments Interval InvoicedTo Kept Kind Known Last LastCharge LastPaymentDate
LastReminderDate Letter LinkEpoch LinkKey Locale LookupDate LookupFill LoweredDate Merchant Method MethodDate Moved NextPaymentDate
NextReminderDate Number Numbered Object Open OtherInstallations OthersSeen Overtaken Owner PK Paid Parked PausedDate
PayBy PaymentAmount PaymentDay PaymentDetails Pending Period PreviousSecret Process ProcessedAmount ProcessedDate
Processor ProcessorAccount Program Reason Recovered Ref Refund ReminderDays Request RequestHash Requested
RequestedDate RetiredRefs RetryDate RevokedDate Rows RunDate SK SKU Salt Scope Secret SecretHash SeenDate Settings
Shards SkipUntil StartedDate State Status Subscription Sums SumsDate TTL TakenDate TimeZone Token ToldDate TrialEnds
PendingCustomer UnpaidAmounts Tries Types URL Until UsedDate Version Waits PriceTerms Price Quantity EvidenceDate Debit Upgrade Boundary Stage Takeover TakenFrom WaitsDate
`

// TestAttributes: each attribute of billing is known to be personal or to be kept. A new one must be added to personal
// or kept, and to docs/privacy.md if it is personal.
func TestAttributes(t *testing.T) {
	known := strings.Fields(kept)
	if len(ours) < 100 {
		t.Fatalf("only %d attributes", len(ours))
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if name < "a" && ours[name] == slices.Contains(personal, name) || ours[name] && !slices.Contains(known, name) {
			t.Errorf("is %s personal? Add it to personal or to kept", name)
		}
	}
	for _, name := range known {
		if !ours[name] {
			t.Errorf("%s is not kept", name)
		}
	}
}
