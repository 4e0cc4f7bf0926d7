package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/duesday/duesday/internal/clock"
	"github.com/duesday/duesday/internal/store"
)

// An action is one kind of request and the tables it is about, for errors.
type action struct {
	name   string // as an IAM policy has it
	tables string
}

func (a action) String() string { return "dynamodb:" + a.name + " on " + a.tables }

// watch returns a context that notes whether a request was given a connection: without
// one nothing can have been sent. It leans on net/http's transport, as Dial has it.
func watch(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}), sent
}

// judge classifies an error of the service or of the network. A failed condition
// and a cancelled transaction are not its business: their answer depends on the writes.
func (a action) judge(err error, sent bool) (verdict, error) {
	if err == nil {
		return final, nil
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if v, judged, known := a.judgeCode(api.ErrorCode(), api.ErrorMessage()); known {
			return v, judged
		}
	}
	if _, ok := errors.AsType[*smithy.SerializationError](err); ok {
		return final, fmt.Errorf("%w: %s: %w", store.ErrInvalid, a, err)
	}
	status := 0
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = r.HTTPStatusCode()
	}
	api, unread := errors.AsType[smithy.APIError](err)
	if unread = unread && api.ErrorCode() == "UnknownError"; !unread { // without a code: the body is empty
		_, unread = errors.AsType[*smithy.DeserializationError](err)
	}
	switch {
	case status == http.StatusBadRequest && (unread || errors.Is(err, io.ErrUnexpectedEOF)):
		// Perhaps a throttle's. Whatever it refused, nothing was done, and a refusal comes again.
		return again, fmt.Errorf("%w: %s: the error response was incomplete: %w", store.ErrThrottled, a, err)
	case status == http.StatusTooManyRequests:
		return again, fmt.Errorf("%w: %s", store.ErrThrottled, a)
	case status == http.StatusRequestEntityTooLarge:
		return final, fmt.Errorf("%w: %s: %w", store.ErrTooLarge, a, err)
	case status >= 400 && status < 500:
		return final, fmt.Errorf("%s: %w", a, err)
	case !sent && status == 0:
		return again, fmt.Errorf("%s: cannot reach DynamoDB: %w", a, err)
	}
	return lost, fmt.Errorf("%s: %w", a, err)
}

// judgeCode judges by the service's own code; known is false for an unknown code.
func (a action) judgeCode(code, message string) (v verdict, err error, known bool) {
	switch code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded",
		"LimitExceededException", "TransactionConflictException", "ReplicatedWriteConflictException":
		return again, fmt.Errorf("%w: %s: %s", store.ErrThrottled, a, code), true
	case "TransactionInProgressException":
		// An earlier sending of the same transaction is still being worked on.
		return lost, fmt.Errorf("%s: %s", a, code), true
	case "InternalServerError", "InternalFailure", "ServiceUnavailable":
		return lost, fmt.Errorf("%s: %s: %s", a, code, message), true
	case "ResourceNotFoundException":
		return final, fmt.Errorf("%w: DynamoDB has no %s", store.ErrMissing, a.tables), true
	case "AccessDeniedException":
		return final, fmt.Errorf("%s is not allowed: %s", a, message), true
	case "ExpiredTokenException", "ExpiredToken":
		return final, fmt.Errorf("%s: the AWS credentials have expired; get new ones, and start the command again", a), true
	case "UnrecognizedClientException", "InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed",
		"RequestExpired":
		return final, fmt.Errorf("%s: %s", a, unsigned(code, message)), true
	case "ValidationException":
		return final, a.invalid(message), true
	case "IdempotentParameterMismatchException":
		return final, fmt.Errorf("%w: %s: %s", store.ErrInvalid, a, code), true
	case "ItemCollectionSizeLimitExceededException":
		return final, fmt.Errorf("%w: %s: %s", store.ErrTooLarge, a, code), true
	}
	return final, nil, false
}

// unsigned tells why DynamoDB takes no signature, and the next step. AWS takes times of five
// minutes around its own.
func unsigned(code, message string) string {
	m := strings.ToLower(message)
	switch {
	case strings.HasPrefix(code, "Request"), strings.Contains(m, "signature expired"),
		strings.Contains(m, "signature not yet current"):
		return "this machine's clock differs from AWS's clock; correct it with NTP"
	case code == "UnrecognizedClientException":
		return "AWS does not know these credentials; check AWS_ACCESS_KEY_ID, the session token and the region"
	}
	return "AWS rejects the signature made with these credentials; check AWS_SECRET_ACCESS_KEY"
}

// invalid tells what DynamoDB calls invalid apart by its message, the only place that says it.
func (a action) invalid(message string) error {
	m := strings.ToLower(message)
	switch {
	case strings.Contains(m, "does not match the schema"), strings.Contains(m, "key element"):
		return fmt.Errorf("%w: %s: the table's keys differ from the keys that Duesday needs; set another prefix or recurring_table in the "+
			"store's URL; to see the differences, run: duesday store describe", store.ErrInvalid, a)
	case strings.Contains(m, "does not have the specified index"):
		return fmt.Errorf("%w: %s: %s", store.ErrMissing, a, message)
	case strings.Contains(m, "size") && (strings.Contains(m, "exceed") || strings.Contains(m, "larger")):
		return fmt.Errorf("%w: %s: %s", store.ErrTooLarge, a, message)
	}
	return fmt.Errorf("%w: %s: %s", store.ErrInvalid, a, message)
}

// A Pace bounds the attempts of one request, such as one page of a Query. The wait before each
// further attempt is random, up to a bound: First at the beginning, then doubled up to Longest.
type Pace struct {
	Attempt time.Duration // one attempt may take so long
	Total   time.Duration // all attempts and the waits between them
	First   time.Duration
	Longest time.Duration

	wall func() time.Time // the machine's clock; nil is time.Now
	told func(error)      // hears why an attempt failed when the waits have come to Longest; may be nil
}

// maxTotal keeps all sendings within the ten minutes for which DynamoDB knows a client token.
const maxTotal = 5 * time.Minute

func (p Pace) orDefault() Pace {
	p.Attempt = cmp.Or(max(p.Attempt, 0), 10*time.Second)
	p.Total = min(cmp.Or(max(p.Total, 0), 40*time.Second), maxTotal)
	p.First = cmp.Or(max(p.First, 0), 25*time.Millisecond)
	p.Longest = cmp.Or(max(p.Longest, 0), 2*time.Second)
	return p
}

// A verdict is the result of one attempt.
type verdict uint8

const (
	final verdict = iota // the answer, good or bad
	again                // nothing was done, and it may be tried again
	lost                 // nobody knows whether it was done
)

// retry calls once until its verdict is final or time is up, and returns the last verdict and
// error. Time is up when ctx ends, as the caller can tell, or Total is over by timer or wall clock.
func (p Pace) retry(ctx context.Context, once func(context.Context) (verdict, error)) (verdict, error) {
	all, cancel := context.WithTimeout(ctx, p.Total)
	defer cancel()
	bound := p.First
	for {
		ctx, cancel := context.WithTimeout(all, p.Attempt)
		v, err := once(ctx)
		cancel()
		if v == final || clock.Wait(all, time.Duration(rand.Int64N(int64(bound)+1))) != nil || over(all, p.wall) {
			return v, err
		}
		if bound == p.Longest && p.told != nil {
			p.told(err)
		}
		bound = min(2*bound, p.Longest)
	}
}

// over reports whether the deadline has passed by the wall clock, which goes on while the
// machine sleeps and timers stand still: a client token may be forgotten meanwhile.
func over(ctx context.Context, wall func() time.Time) bool {
	if wall == nil {
		wall = time.Now
	}
	deadline, _ := ctx.Deadline()
	return !wall().Round(0).Before(deadline.Round(0))
}
