package schema

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
)

// TestRevision: whoever changes an index or a TTL attribute raises Revision, so that stores that exist
// get it, and puts the new sum here.
func TestRevision(t *testing.T) {
	const want = "1 9df062ffc568a0a90696dd9eeffa3e8d5ae9e6ee3b25734aa0036ef7999e25b2"
	b, err := json.Marshal(New(DefaultPrefix).All())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%d %x", Revision, sha256.Sum256(b)); got != want {
		t.Errorf("the tables are %s, want %s: raise Revision, and put the new text here", got, want)
	}
}
