package schema

import (
	"slices"

	"github.com/duesday/duesday/internal/store"
)

func describeOutbox(t store.Table) Description {
	data := object(Data, text("account", "123"), text("email", "s@s.com"), text("subscription", "123"), text("sku", "999"),
		text("amount", "12.99"), text("currency", "USD"), text("amount_text", "12.99 USD"), text("period",
			"1"), text("due_date", "2023-06-28"))
	names := []string{Kind, Data, CreatedDate, Tries, LastError}
	return Description{Table: t,
		Attributes: slices.Concat(typed("S", Kind), typed("M", Data), typed("S", CreatedDate), typed("N", Tries),
			typed("S", LastError, DeadDate)),
		Facets: []Facet{
			{Name: "Effects", PartitionAlias: "Shard", SortAlias: "Due#EffectId", Attributes: names,
				Items: []store.Item{store.NewItem(
					text(PK, "OUT#00"), text(SK, "2023-06-21T14:15:39.247Z#reminder/SAMPLE/123/123/1/2023-06-28"), text(Kind,
						"reminder"),
					data, text(CreatedDate, "2023-06-21T14:15:39.247Z"))}},
			{Name: "DeadLetters", PartitionAlias: "DEAD", SortAlias: "Due#EffectId",
				Attributes: append(slices.Clone(names), DeadDate),
				Items: []store.Item{store.NewItem(
					text(PK, "OUT#DEAD"), text(SK, "2023-05-21T14:15:39.247Z#reminder/SAMPLE/123/123/0/2023-05-28"), text(Kind,
						"reminder"),
					data, text(CreatedDate, "2023-05-21T14:15:39.247Z"), number(Tries, 10), text(LastError, "the mailbox is full"),
					text(DeadDate, "2023-05-25T17:36:00.000Z"))}},
		}}
}
