package folder_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/duesday/duesday/internal/store"
	"github.com/duesday/duesday/internal/store/folder"
)

// BenchmarkCommit compares a commit of three items and a read of one in the holder and in a client,
// by 64 workers.
func BenchmarkCommit(b *testing.B) {
	dir := b.TempDir()
	var sides [2]*folder.Store
	for i := range sides {
		s, err := folder.Open(b.Context(), dir, options(tables, nil))
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		sides[i] = s
	}
	for i, name := range []string{"holder", "client"} {
		var n atomic.Int64
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					id := n.Add(1)
					var writes []store.Write
					for part := range 3 {
						it := itemAt(fmt.Sprintf("%s-%d-%d", name, id, part))
						it.Set("note", store.S("the note of an item, about as long as items are on the average of them all"))
						it.Set("amount", store.Int(1299))
						writes = append(writes, store.Put("t", it))
					}
					if err := sides[i].Commit(b.Context(), writes...); err != nil {
						b.Fatal(err)
					}
					if _, err := sides[i].Get(b.Context(), "t", store.Key{PK: fmt.Sprintf("%s-%d-0", name, id)}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
