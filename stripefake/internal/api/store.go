package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/duesday/duesday/stripefake/internal/shape"
)

// lacks has the members of nearly every object that the objects of a kind do not have.
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

// Create stores a new object of the kind (payment_intent, …). It gives it an id with the prefix
// (pi), object, created, livemode and metadata, unless members or lacks say otherwise.
func (c *Call) Create(kindName, prefix string, members object) object {
	o := members.With("object", kindName)
	for name, value := range map[string]any{"created": c.Now, "livemode": c.Space.Live, "metadata": object{}} {
		if _, given := o[name]; !given && !slices.Contains(strings.Fields(lacks[kindName]), name) {
			o[name] = value
		}
	}
	o["_created"] = c.Now
	if o.ID() == "" {
		o["id"] = c.NewID(prefix)
	}
	c.Space.Put(kindName, o)
	return o
}

func (s *Space) Put(kindName string, o object) {
	k := s.kinds[kindName]
	if k == nil {
		k = &kind{byID: map[string]object{}}
		s.kinds[kindName] = k
	}
	if _, there := k.byID[o.ID()]; !there {
		k.order = append(k.order, o.ID())
	}
	k.byID[o.ID()] = o
}

// Get returns the object for a change in place, or nil.
func (s *Space) Get(kindName, id string) object {
	if k := s.kinds[kindName]; k != nil {
		return k.byID[id]
	}
	return nil
}

// All returns the objects of the kind, oldest first.
func (s *Space) All(kindName string) []object {
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

// Find returns the object for a change in place, or Stripe's error about the parameter. Deleted
// objects are found too.
func (c *Call) Find(kindName, id, param string) (object, error) {
	if o := c.Space.Get(kindName, id); o != nil {
		return o, nil
	}
	err := shape.Missing(kindName, id, param)
	if c.In(c.Space.Account, !c.Space.Live).Get(kindName, id) != nil {
		here, there := "test", "live"
		if c.Space.Live {
			here, there = there, here
		}
		err.Message += "; a similar object exists in " + there + " mode, but a " + here +
			" mode key was used to make this request."
	}
	return nil, err
}

// NewID returns a new id: the prefix, and a unique tail.
func (f *Fake) NewID(prefix string) string {
	f.Numbered++
	tail := strconv.FormatUint(f.Numbered, 36)
	return prefix + "_fake" + strings.Repeat("0", max(0, 10-len(tail))) + tail
}

// Drop forgets an object.
func (s *Space) Drop(kindName, id string) {
	k := s.kinds[kindName]
	if k == nil {
		return
	}
	delete(k.byID, id)
	k.order = slices.DeleteFunc(slices.Clone(k.order), func(other string) bool { return other == id })
}

// Act does something to the object, in the space that has it.
func (f *Fake) Act(kindName, id string, do func(*Call, object) error) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Tick()
	s := f.Holder(kindName, id)
	if s == nil {
		return shape.Missing(kindName, id, "id")
	}
	return do(f.System(s), s.Get(kindName, id))
}
