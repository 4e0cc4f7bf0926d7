package schema

import (
	"slices"

	"github.com/duesday/duesday/internal/store"
)

// describeRecurring has the published model's attributes first, then Duesday's own; its
// two facets first, with its sample data, then those of Duesday's other items. Three errors of
// the model are not repeated: the misspelt name of the table, the stray 1 in the sample receipt's
// sort key, and the sample card number. The processor's token stands in its place.
func describeRecurring(t store.Table) Description {
	attributes := slices.Concat(
		typed("S", Email, PaymentDay, PaymentAmount, LastPaymentDate, NextPaymentDate, LastReminderDate, NextReminderDate,
			SKU),
		typed("M", PaymentDetails), typed("S", CreatedDate, ProcessedDate, ProcessedAmount), typed("N", TTL),
		typed("S", Status, Anchor, Interval, TimeZone, LastCharge, Parked, PausedDate, Requested),
		typed("N", Period, Paid, Installments, AnchorPeriod, ReminderDays, Version),
		typed("BOOL", CancelAtEnd), typed("M", OpenPeriod), typed("S", PaymentMethod), typed("BOOL", FanOut),
		typed("S", Subscription, DueDate, Currency, Charge, Kind, Amount, EndedDate, Reason, Ref), typed("L", Attempts),
		typed("S", RunDate, FromDate, StartedDate), typed("BOOL", Completed, Accepted), typed("M", Counts),
		typed("S", LoweredDate, Installation), typed("N", Format, Shards), typed("BOOL", Charging),
		typed("S", Moved, Owner, Until))
	return Description{Table: t, Attributes: attributes,
		Facets: slices.Concat(publishedFacets(), recordFacets(), storeFacets())}
}

func publishedFacets() []Facet {
	return []Facet{
		facet("Subscription", "AccountId", "SubId#SKU", []string{Email, PaymentDay, PaymentAmount, LastPaymentDate,
			NextPaymentDate, LastReminderDate, NextReminderDate, SKU, PaymentDetails, CreatedDate},
			PK, "ACC#123", SK, "SUB#123#SKU#999", Email, "s@s.com", PaymentDay, "28", PaymentAmount, "12.99",
			LastPaymentDate, "2023-05-18T14:15:39.247Z", NextPaymentDate, "2023-06-28",
			LastReminderDate, "2023-05-21T14:15:39.247Z", NextReminderDate, "2023-06-21", SKU, "999",
			PaymentDetails, sample(PaymentMethod, "pm_card_visa", DefaultAddress, "12 Bridge Street, Birmingham, B12 7ST"),
			CreatedDate, "2023-05-18T09:41:25.856Z"),
		facet("Receipts", "AccountId", "ProcessedDate#SKU", []string{Email, SKU, ProcessedDate, ProcessedAmount, TTL},
			PK, "ACC#123", SK, "REC#2023-05-28T14:15:39.24#SKU#999", Email, "s@s.com", SKU, "999",
			ProcessedDate, "2023-05-28T14:15:39.247Z", ProcessedAmount, "12.99", TTL, 1700318200),
	}
}

// recordFacets are the items of an account beyond the model.
func recordFacets() []Facet {
	return []Facet{
		facet("Account", "AccountId", "ACC", []string{Email, TimeZone, PaymentMethod, CreatedDate, FanOut, Version},
			PK, "ACC#123", SK, "ACC", Email, "s@s.com", CreatedDate, "2023-05-18T09:41:25.856Z", Version, 1),
		facet("Periods", "AccountId", "SubId#SKU#Period",
			[]string{Subscription, SKU, Period, DueDate, Status, Reason, Amount, Currency, EndedDate, Ref, Attempts},
			PK, "ACC#123", SK, "PER#122#SKU#998#000003", Subscription, "122", SKU, "998", Period, 3,
			DueDate, "2023-05-28", Status, "void", Reason, "cancelled", Amount, "4.99", Currency, "USD",
			EndedDate, "2023-05-28T14:15:39.247Z"),
	}
}

// storeFacets are the items about the store itself and its jobs.
func storeFacets() []Facet {
	return []Facet{
		facet("Runs", "Job", "Date#Started",
			[]string{RunDate, FromDate, StartedDate, EndedDate, Completed, Counts, Accepted},
			PK, "RUN#payments", SK, "2023-05-28#2023-05-28T14:15:30.000Z-ABCDEF", RunDate, "2023-05-28",
			FromDate, "2023-05-27", StartedDate, "2023-05-28T14:15:30.000Z", EndedDate, "2023-05-28T14:15:40.000Z",
			Completed, true, Counts, sample("due", 1, "paid", 1)),
		facet("Floors", "Job", "FLOOR", []string{RunDate, LoweredDate},
			PK, "RUN#payments", SK, "FLOOR", RunDate, "2023-05-28", LoweredDate, "2023-05-28T14:00:00.000Z"),
		facet("Store", "META", "META", []string{Installation, Format, Shards, Charging, Reason, CreatedDate, Moved},
			PK, "META", SK, "META", Installation, "SAMPLE", Format, 1, Shards, 1, Charging, true,
			CreatedDate, "2023-05-18T09:41:25.856Z"),
		facet("Leases", "Job", "Date#Shard", []string{Owner, Until, TTL},
			PK, "LEASE#payments", SK, "2023-05-28", Owner, "SAMPLE", Until, "2023-05-28T14:17:30.000Z", TTL, 1685369850),
	}
}
