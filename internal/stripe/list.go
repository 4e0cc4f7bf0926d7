package stripe

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/stripe/api"
)

// rows yields the objects of a list for a request. The pairs are further parameters.
func (p *Processor) rows(ctx context.Context, path string, r billing.ListRequest,
	pairs ...string) iter.Seq2[json.RawMessage, error] {
	query := api.CreatedBetween(r.Since, r.Until)
	if r.Customer != "" {
		query.Set("customer", r.Customer)
	}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return func(yield func(json.RawMessage, error) bool) {
		if err := checkList(r); err != nil {
			yield(nil, err)
			return
		}
		p.api.Rows(ctx, r.At, path, query, nil)(yield)
	}
}

func checkList(r billing.ListRequest) error {
	if r.Customer != "" {
		if err := api.CheckID("customer", r.Customer, "cus_"); err != nil {
			return err
		}
	}
	return api.CheckAt(r.At)
}

// list yields the results of read for each object. It ends at the first error.
func list[S, T any](rows iter.Seq2[json.RawMessage, error], read func(*S) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for raw, err := range rows {
			object := new(S)
			var v T
			if err == nil && json.Unmarshal(raw, object) != nil {
				err = api.Unusable("a list", "an object in it cannot be read")
			}
			if err == nil {
				v, err = read(object)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// whole reads an object as it is.
func whole[S any](object *S) (*S, error) { return object, nil }
