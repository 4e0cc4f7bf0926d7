package stripetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// statuses are Stripe's documented ones.
var statuses = []int{200, 400, 401, 402, 403, 404, 409, 424, 429, 500, 502, 503, 504}

// CheckResponse returns the problems of the answer to a request. Each names its field, as in
// data[].customer. The body of an error must be one of Stripe's. From status 500 on it may be
// without JSON, because Stripe's front door makes some of them. The first problem per field and
// kind stands for all elements of a list.
//
// It is stricter than the specification: it refuses unlisted fields, an error must have a message,
// and an event must have an object, as in CheckEvent.
func (s *Spec) CheckResponse(method, path string, status int, body []byte) []string {
	return s.checkResponse(method, path, status, body, nil)
}

// checkResponse also compares a success with what was asked to be expanded, unless that is
// nil.
func (s *Spec) checkResponse(method, path string, status int, body []byte, asked []string) []string {
	c := s.checker()
	op, _, unknown := s.find(method, path)
	switch {
	case !slices.Contains(statuses, status):
		return []string{fmt.Sprintf("status %d is none that Stripe documents", status)}
	case status >= 500 && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return nil
	case status != http.StatusOK:
		c.checkError(body)
		return c.problems
	case op == nil:
		return []string{"status 200, and " + unknown}
	case op.answer == nil:
		return nil // no JSON
	}
	if value, ok := c.decode(body); ok {
		c.check(value, op.answer, "")
	}
	if asked != nil {
		for _, problem := range unlike(asked, c.whole, c.ids) {
			c.problem("", "%s", problem)
		}
	}
	return c.problems
}

// decode leaves numbers as they are written.
func (c *checker) decode(body []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		c.problem("", "the body is no JSON: %v", err)
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		c.problem("", "the body goes on after its JSON")
	}
	return value, true
}

func (c *checker) checkError(body []byte) {
	value, ok := c.decode(body)
	if !ok {
		return
	}
	c.check(value, c.spec.schemas["error"], "")
	if page, ok := value.(map[string]any); ok {
		if inner, ok := page["error"].(map[string]any); ok {
			if message, _ := inner["message"].(string); message == "" {
				c.problem("error.message", "is missing")
			}
		}
	}
}
