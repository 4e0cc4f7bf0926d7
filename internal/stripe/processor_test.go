package stripe

import (
	"testing"
	"time"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/stripe/api"
	"github.com/duesday/duesday/internal/test/apitest"
)

// processor returns a Processor that the script answers.
func scripted(t *testing.T, s *apitest.Script, change ...func(*Options)) *Processor {
	t.Helper()
	o := Options{API: api.Options{Key: secret.New(apitest.Key), Transport: s, Rate: api.MaxRate,
		Now: func() time.Time { return apitest.Now }, Log: apitest.Log(t)}}
	return newProcessor(t, o, change...)
}

func newProcessor(t *testing.T, o Options, change ...func(*Options)) *Processor {
	t.Helper()
	for _, c := range change {
		c(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

var testTag = processor.Tag{Installation: "inst", Account: "acme", Subscription: "sub", SKU: "gold", Period: 3,
	Generation: 1}
