package refund

import (
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/processor"
)

// docs/internals/declines.md describes the refund protocol: READ, LOOK, RECORD (3), SEND, RECORD (5), with
// the state at rest after each cut. The processor gives back once what was ordered once, because:
//   - There is one record of one id. The id is made of the installation, the charge, the amount
//     and the person's key.
//   - A request is sent for a record only, with the one key of its id, within lookAge of a look
//     that showed no refund of that id.
//   - Within a day the key makes two requests one. After a day the processor may have forgotten
//     the key, and the look shows the refund of the first request.
//
// steps has the decision of every row.

// A trigger is why a refund is looked at.
type trigger int

const (
	byOrder trigger = iota // a person asks for it
	byJob                  // the payment run found its name among the unfinished
)

// A standing is how far the record has come.
type standing int

const (
	absent    standing = iota // there is no record
	requested                 // recorded, without an answer
	refused                   // the processor has refused it, or it has failed
	answered                  // the processor has it
)

func standingOf(r *billing.ReversalRecord) standing {
	switch {
	case r == nil:
		return absent
	case r.State == processor.ReversalRequested:
		return requested
	case r.State == processor.ReversalFailed:
		return refused
	}
	return answered
}

// A word is the processor's word on the refund since the last request. A refund that a look
// has shown is recorded by the look.
type word int

const (
	unknown word = iota // no look is recent enough to send after
	none                // a look has shown no refund of the id
	invalid             // the request was refused; a look after it has shown no refund
	silent              // MaxSends requests have had no answer; a look has shown no refund
	denied              // the processor refuses our credentials or the account, or ctx has ended
)

// lookAge is how long after a look at the processor a request may be sent.
const lookAge = 10 * time.Minute

// A step is what a process does next about a refund.
type step int

const (
	look   step = iota // LOOK
	create             // RECORD (3)
	send               // SEND
	refuse             // RECORD (5), as failed
	leave              // leave it to the next process
	reject             // tell the person of the refusal
	lost               // the record has vanished from the store
	done
)

// steps has the step for every trigger, standing and word; next reads it.
var steps = [...][4][5]step{
	byOrder: {
		//         unknown  none    invalid  silent  denied
		absent:    {look, create, lost, lost, lost},
		requested: {look, send, refuse, leave, leave},
		refused:   {reject, reject, reject, reject, reject},
		answered:  {done, done, done, done, done},
	},
	byJob: {
		absent:    {done, done, done, done, done},
		requested: {look, send, refuse, leave, leave},
		refused:   {done, done, done, done, done},
		answered:  {done, done, done, done, done},
	},
}

func next(t trigger, s standing, w word) step { return steps[t][s][w] }
