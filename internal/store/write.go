package store

// An Op is the operation of a Write.
type Op uint8

// The operations of a Commit.
const (
	OpPut    Op = iota + 1 // replace the whole item, or insert it
	OpUpdate               // set and remove attributes of an item that exists
	OpDelete               // remove an item that exists
	OpCheck                // change nothing, only test the conditions
)

// A Write is one step of a Commit. Create it with Put, Rewrite, Update, Delete or Check.
type Write struct {
	Op     Op
	Table  string
	Key    Key      // update, delete, check; for a put it is taken from the item
	Item   Item     // put: the whole item, its key attributes included
	Was    Item     // put: the item as it was read, of Rewrite
	Set    Item     // update: attributes to set; no key attribute of the table
	Remove []string // update: attributes to remove; no key attribute of the table
	If     []Condition
}

// Put replaces the whole item, or inserts it, if the conditions hold.
func Put(table string, it Item, conditions ...Condition) Write {
	return Write{Op: OpPut, Table: table, Item: it, If: conditions}
}

// Rewrite is Put of an item that was read. Where other programs can write, it changes only the attributes
// that differ from was, so that what they have written into others stays; an absent item is a conflict.
func Rewrite(table string, was, it Item, conditions ...Condition) Write {
	return Write{Op: OpPut, Table: table, Item: it, Was: was, If: conditions}
}

// Differences returns what a write of Rewrite changes.
func (w *Write) Differences() (set Item, remove []string) {
	for _, a := range w.Item {
		if !w.Was.Get(a.Name).Equal(a.Value) {
			set = append(set, a)
		}
	}
	for _, a := range w.Was {
		if !w.Item.Has(a.Name) {
			remove = append(remove, a.Name)
		}
	}
	return set, remove
}

// Update changes an existing item if the conditions hold. An absent or expired item is a conflict.
func Update(table string, key Key, set Item, remove []string, conditions ...Condition) Write {
	return Write{Op: OpUpdate, Table: table, Key: key, Set: set, Remove: remove, If: conditions}
}

// Delete removes an existing item if the conditions hold. An absent or expired item is a conflict.
func Delete(table string, key Key, conditions ...Condition) Write {
	return Write{Op: OpDelete, Table: table, Key: key, If: conditions}
}

// Check only tests the conditions. The item must exist, unless one of the conditions is Absent.
func Check(table string, key Key, conditions ...Condition) Write {
	return Write{Op: OpCheck, Table: table, Key: key, If: conditions}
}

// A Condition must be true of the item before the write.
type Condition struct {
	op    condition
	name  string
	value Value
}

type condition uint8

const (
	itemAbsent condition = iota + 1
	attributeAbsent
	attributeEquals
)

// Absent holds if the item does not exist or has expired.
func Absent() Condition { return Condition{op: itemAbsent} }

// AttributeAbsent holds if the item does not have the attribute, or if the item is absent.
func AttributeAbsent(name string) Condition { return Condition{op: attributeAbsent, name: name} }

// AttributeEquals holds if the item exists and its attribute has that value.
func AttributeEquals(name string, v Value) Condition {
	return Condition{op: attributeEquals, name: name, value: v}
}

// Parts returns the condition's attribute name ("" for Absent) and its value (zero unless
// AttributeEquals), for engines with a condition language of their own.
func (c Condition) Parts() (name string, v Value) { return c.name, c.value }

// Holds reports whether the condition is true of the item; present: neither absent nor expired.
func (c Condition) Holds(it Item, present bool) bool {
	switch c.op {
	case itemAbsent:
		return !present
	case attributeAbsent:
		return !present || !it.Has(c.name)
	case attributeEquals:
		return present && it.Get(c.name).Equal(c.value)
	}
	return false
}

// String describes the condition for errors, without its value, which may be personal data.
func (c Condition) String() string {
	switch c.op {
	case itemAbsent:
		return "item absent"
	case attributeAbsent:
		return c.name + " absent"
	case attributeEquals:
		return c.name + " equals the expected value"
	}
	return "invalid condition"
}
