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
		typed("S", Email, PaymentDay, PaymentAmount, LastPaymentDate, NextPaymentDate, LastReminderDate,
			NextReminderDate, SKU),
		typed("M", PaymentDetails), typed("S", CreatedDate, ProcessedDate, ProcessedAmount), typed("N", TTL),
		typed("S", Status, Anchor, Interval, TimeZone, LastCharge, Parked, PausedDate, Requested),
		typed("N", Period, Paid, Installments, AnchorPeriod, ReminderDays, Version), typed("BOOL",
			CancelAtEnd), typed("M", OpenPeriod),
		typed("S", PaymentMethod), typed("BOOL", FanOut),
		typed("S", Subscription, DueDate, Currency, Charge, Kind),
		typed("S", Amount, EndedDate, Reason, Ref), typed("L", Attempts),
		typed("S", RunDate, FromDate, StartedDate), typed("BOOL", Completed, Accepted), typed("M", Counts), typed("S",
			LoweredDate),
		typed("S", Installation), typed("N", Format, Shards), typed("BOOL", Charging), typed("S", Moved),
		typed("S", Owner, Until))
	return Description{Table: t, Attributes: attributes,
		Facets: slices.Concat(publishedFacets(), recordFacets(), storeFacets())}
}

func publishedFacets() []Facet {
	return []Facet{
		{Name: "Subscription", PartitionAlias: "AccountId", SortAlias: "SubId#SKU",
			Attributes: []string{Email, PaymentDay, PaymentAmount, LastPaymentDate, NextPaymentDate, LastReminderDate,
				NextReminderDate,
				SKU, PaymentDetails, CreatedDate},
			Items: []store.Item{store.NewItem(
				text(PK, "ACC#123"), text(SK, "SUB#123#SKU#999"), text(Email, "s@s.com"), text(PaymentDay,
					"28"), text(PaymentAmount, "12.99"),
				text(LastPaymentDate, "2023-05-18T14:15:39.247Z"), text(NextPaymentDate, "2023-06-28"),
				text(LastReminderDate, "2023-05-21T14:15:39.247Z"), text(NextReminderDate, "2023-06-21"), text(SKU, "999"),
				object(PaymentDetails, text(PaymentMethod, "pm_card_visa"),
					text(DefaultAddress, "12 Bridge Street, Birmingham, B12 7ST")),
				text(CreatedDate, "2023-05-18T09:41:25.856Z"))}},
		{Name: "Receipts", PartitionAlias: "AccountId", SortAlias: "ProcessedDate#SKU",
			Attributes: []string{Email, SKU, ProcessedDate, ProcessedAmount, TTL},
			Items: []store.Item{store.NewItem(
				text(PK, "ACC#123"), text(SK, "REC#2023-05-28T14:15:39.24#SKU#999"), text(Email, "s@s.com"), text(SKU, "999"),
				text(ProcessedDate, "2023-05-28T14:15:39.247Z"), text(ProcessedAmount, "12.99"), number(TTL, 1700318200))}},
	}
}

// recordFacets are the items of an account beyond the model.
func recordFacets() []Facet {
	return []Facet{
		{Name: "Account", PartitionAlias: "AccountId", SortAlias: "ACC",
			Attributes: []string{Email, TimeZone, PaymentMethod, CreatedDate, FanOut, Version},
			Items: []store.Item{store.NewItem(
				text(PK, "ACC#123"), text(SK, "ACC"), text(Email, "s@s.com"), text(CreatedDate,
					"2023-05-18T09:41:25.856Z"), number(Version, 1))}},
		{Name: "Periods", PartitionAlias: "AccountId", SortAlias: "SubId#SKU#Period",
			Attributes: []string{Subscription, SKU, Period, DueDate, Status, Reason, Amount, Currency, EndedDate, Ref, Attempts},
			Items: []store.Item{store.NewItem(
				text(PK, "ACC#123"), text(SK, "PER#122#SKU#998#000003"), text(Subscription, "122"), text(SKU,
					"998"), number(Period, 3),
				text(DueDate, "2023-05-28"), text(Status, "void"), text(Reason, "cancelled"), text(Amount,
					"4.99"), text(Currency, "USD"),
				text(EndedDate, "2023-05-28T14:15:39.247Z"))}},
	}
}

// storeFacets are the items about the store itself and its jobs.
func storeFacets() []Facet {
	return []Facet{
		{Name: "Runs", PartitionAlias: "Job", SortAlias: "Date#Started",
			Attributes: []string{RunDate, FromDate, StartedDate, EndedDate, Completed, Counts, Accepted},
			Items: []store.Item{store.NewItem(
				text(PK, "RUN#payments"), text(SK, "2023-05-28#2023-05-28T14:15:30.000Z-ABCDEF"), text(RunDate, "2023-05-28"),
				text(FromDate, "2023-05-27"), text(StartedDate, "2023-05-28T14:15:30.000Z"), text(EndedDate,
					"2023-05-28T14:15:40.000Z"),
				truth(Completed, true), object(Counts, number("due", 1), number("paid", 1)))}},
		{Name: "Floors", PartitionAlias: "Job", SortAlias: "FLOOR",
			Attributes: []string{RunDate, LoweredDate},
			Items: []store.Item{store.NewItem(
				text(PK, "RUN#payments"), text(SK, "FLOOR"), text(RunDate, "2023-05-28"), text(LoweredDate,
					"2023-05-28T14:00:00.000Z"))}},
		{Name: "Store", PartitionAlias: "META", SortAlias: "META",
			Attributes: []string{Installation, Format, Shards, Charging, Reason, CreatedDate, Moved},
			Items: []store.Item{store.NewItem(
				text(PK, "META"), text(SK, "META"), text(Installation, "SAMPLE"), number(Format, 1), number(Shards, 1),
				truth(Charging, true), text(CreatedDate, "2023-05-18T09:41:25.856Z"))}},
		{Name: "Leases", PartitionAlias: "Job", SortAlias: "Date#Shard",
			Attributes: []string{Owner, Until, TTL},
			Items: []store.Item{store.NewItem(
				text(PK, "LEASE#payments"), text(SK, "2023-05-28"), text(Owner, "SAMPLE"), text(Until, "2023-05-28T14:17:30.000Z"),
				number(TTL, 1685369850))}},
	}
}
