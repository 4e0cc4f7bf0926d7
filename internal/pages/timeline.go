package pages

import (
	"encoding/json"
	"slices"
)

// timeline adds the subscription's periods to the data, the latest first, each with its receipts, its mails
// and its ending. Without one, the open period or the next one is there as well, unless the subscription ends on that day.
func timeline(v *visit, data object) error {
	sub, periods := data["subscription"].(object), map[int64]object{}
	at := func(x any) object {
		n, ok := x.(json.Number)
		if !ok { // an imported receipt has no period
			return nil
		}
		i, _ := n.Int64()
		if periods[i] == nil {
			periods[i] = object{"number": n}
		}
		return periods[i]
	}
	for _, r := range dataOf(data, "receipts") { // the latest first
		if p := at(r["period"]); p != nil {
			list, _ := p["receipts"].([]any)
			p["receipts"], p["due_date"] = slices.Insert(list, 0, any(r)), r["due_date"]
		}
	}
	for _, e := range dataOf(data, "periods") {
		p := at(e["period"])
		p["ended"], p["due_date"] = e, e["due_date"]
	}
	if open, ok := sub["open"].(object); ok {
		p := at(open["period"])
		p["open"], p["due_date"] = open, open["due_date"]
	} else if sub["ends_on"] != nil { // nothing is charged on that day
		delete(sub, "next_payment_date")
	} else if due, ok := sub["due_date"]; ok {
		p := at(sub["period"])
		p["next"], p["due_date"] = true, due
	}
	for _, m := range dataOf(data, "mails") { // the latest first
		n, _ := m["period"].(json.Number)
		if i, err := n.Int64(); err == nil && m["subscription"] == sub["id"] && periods[i] != nil {
			list, _ := periods[i]["mails"].([]any)
			periods[i]["mails"] = slices.Insert(list, 0, any(m))
		}
	}
	var numbers []int64
	for n := range periods {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	var list []any
	for _, n := range numbers {
		list = append(list, periods[n])
	}
	data["timeline"], data["offered"] = list, offered(sub, dataOf(data, "periods"), v.o.Now())
	return nil
}

// dataOf returns the objects of a list of the API.
func dataOf(data object, name string) (all []object) {
	page, _ := data[name].(object)
	return objectsOf(page["data"])
}

// objectsOf returns the objects of a JSON array.
func objectsOf(x any) (all []object) {
	list, _ := x.([]any)
	for _, x := range list {
		if o, ok := x.(object); ok {
			all = append(all, o)
		}
	}
	return all
}
