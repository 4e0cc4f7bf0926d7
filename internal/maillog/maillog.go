// Package maillog records how each mail ended, for 90 days, and lists these records and the mail that waits.
//
// It does not send mail, and does not render it.
package maillog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/duesday/duesday/internal/mail/smtp"
	"github.com/duesday/duesday/internal/outbox"
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/store"
)

// States of a mail. The outbox has the waiting and held ones, and the records have the others.
const (
	Waiting   = "waiting"
	Held      = "held" // after a restore, until an operator decides
	Sent      = "sent"
	Bounced   = "bounced" // the mail server refused the address for good
	GivenUp   = "given_up"
	NotNeeded = "not_needed" // what it was about had changed
	Dropped   = "dropped"    // by an operator
)

// States returns all states.
func States() []string {
	return []string{Waiting, Held, Sent, Bounced, GivenUp, NotNeeded, Dropped}
}

// Days is for how long a record is kept after the mail was written.
const Days = 90

// A Mail is a mail that ended, or that is in the outbox. An erased one has no address and no text.
type Mail struct {
	outbox.Effect // Due is only of a waiting or held mail
	MailID        string
	State         string
	Ended         time.Time // zero: it has not ended
	Answer        string    // of the mail server, or why the mail was not sent; without secrets
	Place         string    // in its list
}

// A record is the mail's outbox row at MAIL#<month>#<shard> / <created>#<effect>, with its outcome and a TTL.
// The month and the time are those of the mail's creation, so a mail that is replayed, or whose end is
// committed twice, has one record. The shard is a hash of the account, so the mail of one account is in a
// sixteenth of the records.
const (
	Prefix      = "MAIL#"
	shards      = 16
	monthLayout = "2006-01"
	stampLayout = "2006-01-02T15:04:05.000Z"
	maxData     = 4 << 10 // bytes of a record's data
	idPrefix    = "mail_"
	idMillis    = 13 // digits
)

func partition(created time.Time, shard uint32) string {
	return fmt.Sprintf("%s%s#%x", Prefix, created.UTC().Format(monthLayout), shard)
}

func shardOf(account string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(account)) // never fails
	return h.Sum32() % shards
}

// idOf returns the mail's ID, which has what its key is made of, and a hash of the effect's ID.
func idOf(e outbox.Effect) string {
	sum := sha256.Sum256([]byte(e.ID))
	return fmt.Sprintf("%s%0*d%x%s", idPrefix, idMillis, e.Created.UnixMilli(), shardOf(e.Data[outbox.DataAccount]), hex.EncodeToString(sum[:12]))
}

// keyOf returns the record's partition, and the prefix of its sort key, from the mail's ID.
func keyOf(id string) (pk, prefix string, ok bool) {
	text, is := strings.CutPrefix(id, idPrefix)
	if !is || len(text) <= idMillis {
		return "", "", false
	}
	millis, err := strconv.ParseInt(text[:idMillis], 10, 64)
	shard, wrong := strconv.ParseUint(text[idMillis:idMillis+1], 16, 32)
	created := time.UnixMilli(millis)
	return partition(created, uint32(shard)), created.UTC().Format(stampLayout) + "#", errors.Join(err, wrong) == nil
}

// Record returns the put of the mail's record into the recurring payments table. It is for outbox.Recording.
func Record(table string, now time.Time, row store.Item, e outbox.Effect, o outbox.Outcome) []store.Write {
	it := store.NewItem(
		store.Attribute{Name: schema.CreatedDate, Value: row.Get(schema.CreatedDate)},
		store.Attribute{Name: schema.Data, Value: store.M(dataOf(e))},
		store.Attribute{Name: schema.Kind, Value: store.S(e.Kind)},
		store.Attribute{Name: schema.PK, Value: store.S(partition(e.Created, shardOf(e.Data[outbox.DataAccount])))},
		store.Attribute{Name: schema.SK, Value: store.S(e.Created.UTC().Format(stampLayout) + "#" + e.ID)},
		store.Attribute{Name: schema.State, Value: store.S(stateOf(o))},
		store.Attribute{Name: schema.TTL, Value: store.Int(e.Created.AddDate(0, 0, Days).Unix())},
	)
	if o.End != outbox.Replayed {
		it.Set(schema.EndedDate, store.S(now.UTC().Format(stampLayout)))
	}
	if o.Tries > 0 {
		it.Set(schema.Tries, store.Int(int64(o.Tries)))
	}
	if answer := answerOf(o.Answer, o.Err); answer != "" {
		it.Set(schema.Answer, store.S(answer))
	}
	if numbered := row.Get(schema.Numbered); numbered.Kind() == store.KindList { // to render it with its number
		it.Set(schema.Numbered, numbered)
	}
	return []store.Write{store.Put(table, it)}
}

func answerOf(text string, err error) string {
	if err != nil {
		text = err.Error()
	}
	return secret.Short(text)
}

func stateOf(o outbox.Outcome) string {
	_, bounced := errors.AsType[*smtp.Bounce](o.Err)
	switch {
	case bounced:
		return Bounced
	case o.End == outbox.GivenUp:
		return GivenUp
	case o.End == outbox.Replayed:
		return Waiting
	case o.Asked:
		return Dropped
	case o.End == outbox.Unwanted:
		return NotNeeded
	}
	return Sent
}

// names are the data that say which mail it is.
var names = []string{outbox.DataAccount, outbox.DataEmail, outbox.DataPeriod, outbox.DataSubscription}

// dataOf returns the effect's data, or the names alone if it is too large: the mail cannot be rendered then.
func dataOf(e outbox.Effect) (data store.Item) {
	size := 0
	for name, value := range e.Data {
		size += len(name) + len(value)
		data.Set(name, store.S(value))
	}
	if size <= maxData {
		return data
	}
	data = nil
	for _, name := range names {
		if value := e.Data[name]; value != "" {
			data.Set(name, store.S(value))
		}
	}
	return data
}

// Bare returns a record without personal data.
func Bare(it store.Item) store.Item {
	now, data := it.Clone(), store.Item{}
	for _, a := range it.Get(schema.Data).Map() {
		if a.Name == outbox.DataAccount || a.Name == outbox.DataPeriod || a.Name == outbox.DataSubscription {
			data.Set(a.Name, a.Value)
		}
	}
	now.Set(schema.Data, store.M(data))
	now.Remove(schema.Answer)
	return now
}

// IsRecord reports whether the item is a record.
func IsRecord(it store.Item) bool { return strings.HasPrefix(it.Str(schema.PK), Prefix) }

// Decode reads a record, or a row of the outbox. With an error, the mail has the readable attributes.
func Decode(it store.Item) (*Mail, error) {
	e, err := outbox.Decode(it)
	m := &Mail{Effect: e, MailID: idOf(e), State: it.Str(schema.State), Place: it.Str(schema.SK)}
	switch {
	case IsRecord(it):
		m.Answer, m.Due = it.Str(schema.Answer), time.Time{}
		if text := it.Str(schema.EndedDate); text != "" {
			m.Ended, _ = time.Parse(stampLayout, text)
		}
		return m, err
	case e.Dead:
		m.State = GivenUp
		m.Ended, _ = time.Parse(stampLayout, it.Str(schema.DeadDate))
	case e.Queue == outbox.Held:
		m.State = Held
	default:
		m.State = Waiting
	}
	m.Answer = secret.Short(e.Error)
	return m, err
}

// HasText reports whether the mail still has what its text is made of.
func (m *Mail) HasText() bool {
	return cmp.Or(m.Data[outbox.DataAmount], m.Data[outbox.DataAmountText], m.Data[outbox.DataText]) != ""
}
