package httpapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/duesday/duesday/internal/tracking"
)

// views are the types with the JSON form of tracking's nouns and of the bodies made of them. Each
// line has the names of a noun's exported fields, in their order. A field named - is in no JSON, a
// field with ? at its end is left out if it is empty, and a field with > comes after the others.
var views = makeViews([]nounForm{
	{tracking.Change{}, "at what event?"},
	{tracking.SubscriptionState{}, "status ending? schedule?"},
	{tracking.Effect{}, "state reason? asked? done?"},
	{tracking.Done{}, "automation action at"},
	{tracking.Order{}, "- - account kind key amount? currency? price? payments? description? customer? email? name? " +
		"payment_method?"},
	{tracking.Purchase{}, "id account stripe_account kind created last_updated fulfilled order customer? problem? " +
		"fulfilment? unsubscribe? automations? subscriptions? -"},
	{tracking.Refund{}, "id amount status"},
	{tracking.Dispute{}, "id amount status"},
	{tracking.Payment{}, "id stripe_account account purchase created last_updated status codes? amount? currency? " +
		"invoice? subscription? refunded? refunds? disputes? history?"},
	{tracking.Subscription{}, "id stripe_account account purchase created last_updated status stripe_status? ending? " +
		"schedule? history?"},
	{tracking.Step{}, "at about what event? detail?"},
	{tracking.Timeline{}, "purchase payments subscriptions steps"},
	{tracking.PollState{}, "verified_through? checked? next? quiet? swept? error?"},
	{tracking.ConnectedAccount{}, "stripe_account account own? created last_updated status polled"},
	{tracking.Job{}, "id action purchase account stripe_account kind key? reason at"},
	{tracking.WaitingJob{}, "id action purchase due? tries? error? dead?"},
	{tracking.EventRow{}, "id type? stripe_account? subscription? at"},
	{tracking.Verdict{}, "event status reason? duplicate?"},
	{tracking.Difference{}, "id stored folded"},
	{tracking.Rebuilt{}, "stripe_account events unread compared partial ahead differences"},
	{tracking.Tag{}, "installation? purchase? kind? charge? charge_account? charge_subscription?"},
	{tracking.Object{}, "kind id status? created? tag?> seen? failed? code? amount? currency? payment? invoice? " +
		"subscription? schedule? customer? invoice_told? refunded? refunds?"},
	{createdForm{}, "purchase objects customer? client_secret? declined? action_required? repeated?"},
})

// A nounForm has the names of a noun's fields.
type nounForm struct {
	noun  any
	names string
}

// A viewType is the type of a noun's view: it has the noun's fields, with JSON names as tags.
type viewType struct {
	reflect.Type
	places []int // in the noun, of each field
}

// viewTypes are the views' types by those of their nouns.
type viewTypes map[reflect.Type]viewType

func makeViews(forms []nounForm) viewTypes {
	types := viewTypes{}
	for _, form := range forms {
		t, names := reflect.TypeOf(form.noun), strings.Fields(form.names)
		exported := slices.DeleteFunc(slices.Collect(t.Fields()), func(f reflect.StructField) bool { return !f.IsExported() })
		if len(names) != len(exported) {
			panic(fmt.Sprintf("httpapi: %s has other fields than names", t)) // unreachable: each test would see it
		}
		var fields, last []reflect.StructField
		var places, lastPlaces []int
		for i, f := range exported {
			name, late := strings.CutSuffix(names[i], ">")
			name, optional := strings.CutSuffix(name, "?")
			tag := name
			switch {
			case name == "-":
				continue
			case optional && f.Type.Kind() == reflect.Struct:
				tag += ",omitzero"
			case optional:
				tag += ",omitempty"
			}
			f = reflect.StructField{Name: f.Name, Type: types.of(f.Type), Tag: reflect.StructTag(`json:"` + tag + `"`)}
			if place := exported[i].Index[0]; late {
				last, lastPlaces = append(last, f), append(lastPlaces, place)
			} else {
				fields, places = append(fields, f), append(places, place)
			}
		}
		types[t] = viewType{reflect.StructOf(append(fields, last...)), append(places, lastPlaces...)}
	}
	return types
}

// of returns the type of the JSON form of values of the type.
func (types viewTypes) of(t reflect.Type) reflect.Type {
	if view, ok := types[t]; ok {
		return view.Type
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		elem := types.of(t.Elem())
		switch {
		case elem == t.Elem():
		case t.Kind() == reflect.Pointer:
			return reflect.PointerTo(elem)
		case t.Kind() == reflect.Slice:
			return reflect.SliceOf(elem)
		default:
			return reflect.MapOf(t.Key(), elem)
		}
	}
	return t
}

// View returns the value with a JSON form: a noun of package tracking, a pointer to one, or a list
// of them has that of the API. Any other value is its own view.
func View(v any) any {
	from := reflect.ValueOf(v)
	if v == nil {
		return v
	}
	t := views.of(from.Type())
	if t == from.Type() {
		return v
	}
	view := reflect.New(t)
	copyFields(view.Elem(), from)
	return view.Interface()
}

// readView reads JSON by read into the value that v points to.
func readView(v any, read func(view any) error) error {
	to := reflect.ValueOf(v).Elem()
	view := reflect.New(views.of(to.Type()))
	err := read(view.Interface())
	copyFields(to, view.Elem())
	return err
}

// copyFields copies the fields of a view from its noun, or to it.
func copyFields(to, from reflect.Value) {
	switch {
	case to.Type() == from.Type():
		to.Set(from)
	case to.Kind() == reflect.Struct:
		if view, ok := views[from.Type()]; ok {
			for i, place := range view.places {
				copyFields(to.Field(i), from.Field(place))
			}
			return
		}
		for i, place := range views[to.Type()].places {
			copyFields(to.Field(place), from.Field(i))
		}
	case from.IsNil():
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		copyFields(to.Elem(), from.Elem())
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			copyFields(to.Index(i), from.Index(i))
		}
	default:
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
		for key, value := range from.Seq2() {
			elem := reflect.New(to.Type().Elem()).Elem()
			copyFields(elem, value)
			to.SetMapIndex(key, elem)
		}
	}
}

// A createdForm is a tracking.Created in JSON.
type createdForm struct {
	Purchase               *tracking.Purchase
	Objects                []tracking.Object // the payment, subscription, schedule at Stripe
	Customer, ClientSecret string
	Declined               string
	Action, Repeated       bool
}

func formOfCreated(c *tracking.Created) createdForm {
	return createdForm{Purchase: c.Purchase, Objects: append([]tracking.Object{}, c.Sale.Objects...),
		Customer: c.Sale.Customer, ClientSecret: c.Sale.ClientSecret.Reveal(), Declined: c.Sale.Declined,
		Action: c.Sale.Action, Repeated: c.Repeated}
}
