package stripefake

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// lacks says which of the members that nearly every object has those of a kind do not have.
var lacks = map[string]string{
	"account":                 "livemode",
	"balance_transaction":     "livemode metadata",
	"event":                   "metadata",
	"invoice_payment":         "metadata",
	"invoiceitem":             "created", // it has a date
	"line_item":               "created",
	"mandate":                 "created metadata",
	"refund":                  "livemode",
	"subscription_item":       "livemode",
	"test_helpers.test_clock": "metadata",
}

// create stores a new object of the kind (payment_intent, …) under a new id with the prefix
// (pi), with id, object, created, livemode and metadata, where its kind has them and members
// do not: members may give id, created and metadata.
func (c *call) create(kindName, prefix string, members object) object {
	o := maps.Clone(members)
	if o == nil {
		o = object{}
	}
	o["object"] = kindName
	for name, value := range map[string]any{"created": c.now, "livemode": c.space.live, "metadata": object{}} {
		if _, given := o[name]; !given && !slices.Contains(strings.Fields(lacks[kindName]), name) {
			o[name] = value
		}
	}
	o["_created"] = c.now
	if o.id() == "" {
		o["id"] = c.newID(prefix)
	}
	c.space.put(kindName, o)
	return o
}

func (s *space) put(kindName string, o object) {
	k := s.kinds[kindName]
	if k == nil {
		k = &kind{byID: map[string]object{}}
		s.kinds[kindName] = k
	}
	if _, there := k.byID[o.id()]; !there {
		k.order = append(k.order, o.id())
	}
	k.byID[o.id()] = o
}

// get returns the object, to be changed in place, or nil.
func (s *space) get(kindName, id string) object {
	if k := s.kinds[kindName]; k != nil {
		return k.byID[id]
	}
	return nil
}

// all returns the objects of the kind, oldest first.
func (s *space) all(kindName string) []object {
	k := s.kinds[kindName]
	if k == nil {
		return nil
	}
	list := make([]object, len(k.order))
	for i, id := range k.order {
		list[i] = k.byID[id]
	}
	return list
}

// find returns the object that a request names, to be changed in place, or Stripe's error
// about the parameter. Objects with deleted: true are found.
func (c *call) find(kindName, id, param string) (object, error) {
	if o := c.space.get(kindName, id); o != nil {
		return o, nil
	}
	err := &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "resource_missing", param: param,
		message: "No such " + kindName + ": '" + shown(id) + "'"}
	if c.in(c.space.account, !c.space.live).get(kindName, id) != nil {
		here, there := "test", "live"
		if c.space.live {
			here, there = there, here
		}
		err.message += "; a similar object exists in " + there + " mode, but a " + here + " mode key was used to make this request."
	}
	return nil, err
}

// newID returns a new id: the prefix, and a tail that no other id of the fake has.
func (f *Fake) newID(prefix string) string {
	f.numbered++
	tail := strconv.FormatUint(f.numbered, 36)
	return prefix + "_fake" + strings.Repeat("0", max(0, 10-len(tail))) + tail
}

// drop forgets an object.
func (s *space) drop(kindName, id string) {
	k := s.kinds[kindName]
	if k == nil {
		return
	}
	delete(k.byID, id)
	for i, other := range k.order {
		if other == id {
			k.order = append(k.order[:i:i], k.order[i+1:]...)
			return
		}
	}
}

// act has something happen to the object, wherever it is.
func (f *Fake) act(kindName, id string, do func(*call, object) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick()
	s := f.holder(kindName, id)
	if s == nil {
		return missing(kindName, id, "id")
	}
	return do(f.system(s), s.get(kindName, id))
}
