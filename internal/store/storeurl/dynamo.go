package storeurl

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
)

// openTables opens a dynamodb: place, and makes its tables if it may and one is missing:
// on demand, for whoever wants them otherwise makes them first.
func (p Place) openTables(ctx context.Context, o Options) (store.Store, error) {
	client, err := dynamostore.Dial(ctx, p.Region, p.Endpoint)
	if err != nil {
		return nil, err
	}
	s, err := dynamostore.Open(ctx, dynamostore.Options{Tables: o.Tables, Now: o.Now, Client: client, Logger: o.Logger})
	if err != nil || !o.Create {
		return opened(s, err)
	}
	missing, err := anyMissing(ctx, s, o.Tables)
	if err == nil && missing {
		_, err = dynamotable.Ensure(ctx, client, o.Tables)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// anyMissing looks for an item in each table: that needs no more rights than any run has.
func anyMissing(ctx context.Context, s store.Store, tables []store.Table) (bool, error) {
	for i := range tables {
		key := store.Key{PK: "-"}
		if tables[i].SortKey != "" {
			key.SK = "-"
		}
		_, err := s.Get(ctx, tables[i].Name, key)
		switch {
		case errors.Is(err, store.ErrMissing):
			return true, nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return false, err
		}
	}
	return false, nil
}
