package storeurl

import (
	"context"
	"errors"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/dynamostore"
	"github.com/duesday/duesday/internal/store/dynamotable"
)

// openTables opens a dynamodb: place. With Options.Create it makes missing tables, on demand;
// store create makes them with other settings.
func (p Place) openTables(ctx context.Context, o Options) (store.Store, error) {
	client, err := dynamostore.Dial(ctx, p.Region, p.Endpoint)
	if err != nil {
		return nil, err
	}
	s, err := dynamostore.Open(ctx, dynamostore.Options{Tables: o.Tables, Now: o.Now, Client: client, Logger: o.Logger})
	if err != nil || !o.Create {
		return opened(s, err)
	}
	missing, err := missing(ctx, s, o.Tables)
	if err == nil && len(missing) > 0 {
		_, err = dynamotable.Ensure(ctx, client, missing)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// missing returns the tables without an answer to a Get. A Get needs no rights beyond those of a
// run, and reveals nothing of another program's table.
func missing(ctx context.Context, s store.Store, tables []store.Table) (missing []store.Table, err error) {
	for _, t := range tables {
		key := store.Key{PK: "-"}
		if t.SortKey != "" {
			key.SK = "-"
		}
		_, err := s.Get(ctx, t.Name, key)
		switch {
		case errors.Is(err, store.ErrMissing):
			missing = append(missing, t)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return missing, nil
}
