package pages

import (
	"net/url"
	"slices"
	"strings"
)

// told returns the steps of a purchase's timeline, the latest first. Consecutive steps of one event are one entry. With
// the ID of a payment or subscription, it returns the entries with a step about it.
func told(t object, about string) (entries []object) {
	purchase, _ := t["purchase"].(object)
	links := map[any]string{purchase["id"]: at("purchases", purchase["id"])}
	for _, o := range objectsOf(t["payments"]) {
		links[o["id"]] = at("payments", o["stripe_account"], o["id"])
	}
	for _, o := range objectsOf(t["subscriptions"]) {
		links[o["id"]] = at("purchases", purchase["id"], "subscriptions", o["id"])
	}
	var last object
	for _, s := range objectsOf(t["steps"]) {
		if last == nil || s["event"] == nil || s["event"] != last["event"] {
			last = object{"at": s["at"], "event": s["event"], "type": s["detail"], "changed": []any(nil)}
			entries = append(entries, last)
		}
		what, _ := s["what"].(string)
		acts := strings.HasPrefix(what, "fulfil") || strings.HasPrefix(what, "unsubscribe")
		last["changed"] = append(last["changed"].([]any), object{"about": s["about"], "link": links[s["about"]], "what": what, "action": acts})
	}
	slices.Reverse(entries)
	return slices.DeleteFunc(entries, func(e object) bool {
		return about != "" && !slices.ContainsFunc(objectsOf(e["changed"]), func(c object) bool { return c["about"] == about })
	})
}

// sale adds the timeline of the purchase to the data, or of the page's subscription in it.
func sale(v *visit, data object) error {
	purchase, id := data["purchase"].(object), v.r.PathValue("tracked")
	data["timeline"] = told(purchase, id)
	for _, o := range objectsOf(purchase["subscriptions"]) {
		if o["id"] == id {
			data["subscription"] = o
		}
	}
	if id != "" && data["subscription"] == nil {
		return errNoPage
	}
	return nil
}

// paid adds the payment's timeline to the data: the entries of its purchase about it.
func paid(v *visit, data object) error {
	payment := data["payment"].(object)
	purchase, _ := payment["purchase"].(string)
	if purchase == "" {
		return nil
	}
	t, err := v.get("/v1/purchases/" + url.PathEscape(purchase))
	id, _ := payment["id"].(string)
	data["timeline"] = told(t, id)
	return err
}
