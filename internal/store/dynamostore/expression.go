package dynamostore

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// An expression collects the names and values in the texts of one request. No name
// of an attribute stands in a text itself: any word may be reserved. The placeholders are
// short, for a text has at most 4 KB. The maps are nil while nothing is in them.
type expression struct {
	names  map[string]string
	values attributes
	known  map[string]string // placeholder by name
}

func (e *expression) name(attribute string) string {
	if p, ok := e.known[attribute]; ok {
		return p
	}
	if e.names == nil {
		e.names, e.known = map[string]string{}, map[string]string{}
	}
	p := "#" + strconv.FormatInt(int64(len(e.names)), 36)
	e.names[p], e.known[attribute] = attribute, p
	return p
}

func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = attributes{}
	}
	p := ":" + strconv.FormatInt(int64(len(e.values)), 36)
	e.values[p] = v
	return p
}

func (e *expression) text(s string) string { return e.value(&types.AttributeValueMemberS{Value: s}) }

// expired is true of an item with a TTL at or before now. A TTL that is no number is
// outside every range of numbers. It is "" for a table without expiry.
func (e *expression) expired(t *store.Table, now int64) string {
	if t.TTL == "" {
		return ""
	}
	return e.name(t.TTL) + " BETWEEN " + e.value(&types.AttributeValueMemberN{Value: "1"}) + " AND " +
		e.value(&types.AttributeValueMemberN{Value: strconv.FormatInt(max(now, 1), 10)})
}

// condition writes the demands of Write.Resolve on the stored item, or nil if there are none.
func (e *expression) condition(w *store.Write, t *store.Table, now int64) *string {
	var absent bool
	var without, all []string // names that must be missing; all conditions
	living := w.Op == store.OpUpdate || w.Op == store.OpDelete || w.Op == store.OpCheck
	for _, c := range w.If {
		switch name, v := c.Parts(); {
		case name == "":
			absent = true
			living = living && w.Op != store.OpCheck
		case v.IsZero():
			without = append(without, name)
		default:
			all = append(all, e.name(name)+" = "+e.value(encode(v)))
		}
	}
	living = living || len(all) > 0
	if !living && !absent && len(without) == 0 {
		return nil
	}
	missing := func() (texts []string) { // DynamoDB refuses an unused name
		if len(without) == 0 {
			return nil
		}
		null := e.value(&types.AttributeValueMemberNULL{Value: true}) // reads as absent
		for _, name := range without {
			texts = append(texts, "(attribute_not_exists("+e.name(name)+") OR "+e.name(name)+" = "+null+")")
		}
		return texts
	}
	expired := e.expired(t, now)
	dead := "attribute_not_exists(" + e.name(t.PartitionKey) + ")"
	if expired != "" {
		dead = "(" + dead + " OR " + expired + ")"
	}
	switch {
	case living:
		all = append(all, "attribute_exists("+e.name(t.PartitionKey)+")")
		if expired != "" {
			all = append(all, "(NOT "+expired+")")
		}
		all = append(all, missing()...)
		if absent { // no item can hold both: the write must conflict
			all = append(all, dead)
		}
	case absent: // an absent item lacks every attribute too
		all = []string{dead}
	default:
		gone := strings.Join(missing(), " AND ")
		if len(without) > 1 { // a single one has parentheses already, and DynamoDB refuses a second pair
			gone = "(" + gone + ")"
		}
		all = []string{"(" + dead + " OR " + gone + ")"}
	}
	return aws.String(strings.Join(all, " AND "))
}

// update writes the attributes to set and to remove. The token is set, or removed without one.
func (e *expression) update(w *store.Write, token []byte) *string {
	var set, remove []string
	for _, a := range w.Set {
		set = append(set, e.name(a.Name)+"="+e.value(encode(a.Value)))
	}
	for _, name := range w.Remove {
		remove = append(remove, e.name(name))
	}
	if token != nil {
		set = append(set, e.name(tokenName)+"="+e.value(&types.AttributeValueMemberB{Value: token}))
	} else {
		remove = append(remove, e.name(tokenName))
	}
	var text string
	if len(set) > 0 {
		text = "SET " + strings.Join(set, ",")
	}
	if len(remove) > 0 {
		text += " REMOVE " + strings.Join(remove, ",")
	}
	return &text
}
