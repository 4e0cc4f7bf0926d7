package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

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
	switch {
	case status == http.StatusTooManyRequests:
		return again, fmt.Errorf("%w: %s", store.ErrThrottled, a)
	case status == http.StatusRequestEntityTooLarge:
		return final, fmt.Errorf("%w: %s: %w", store.ErrTooLarge, a, err)
	case status >= 400 && status < 500:
		return final, fmt.Errorf("%s: %w", a, err)
	case !sent && status == 0:
		return again, fmt.Errorf("%s: DynamoDB cannot be reached: %w", a, err)
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
	case "ValidationException":
		return final, a.invalid(message), true
	case "IdempotentParameterMismatchException":
		return final, fmt.Errorf("%w: %s: %s", store.ErrInvalid, a, code), true
	case "ItemCollectionSizeLimitExceededException":
		return final, fmt.Errorf("%w: %s: %s", store.ErrTooLarge, a, code), true
	}
	return final, nil, false
}

// invalid tells what DynamoDB calls invalid apart by its message, the only place that says it.
func (a action) invalid(message string) error {
	m := strings.ToLower(message)
	switch {
	case strings.Contains(m, "does not have the specified index"):
		return fmt.Errorf("%w: %s: %s", store.ErrMissing, a, message)
	case strings.Contains(m, "size") && (strings.Contains(m, "exceed") || strings.Contains(m, "larger")):
		return fmt.Errorf("%w: %s: %s", store.ErrTooLarge, a, message)
	}
	return fmt.Errorf("%w: %s: %s", store.ErrInvalid, a, message)
}
