package stripetest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fixtures returns stripe-mock's sample of every object.
func fixtures(t *testing.T) map[string]map[string]any {
	t.Helper()
	Load(t)
	dir, err := module()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "embedded", "openapi", "fixtures3.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{}
	value, ok := c.decode(text)
	if !ok {
		t.Fatal(c.problems)
	}
	all := map[string]map[string]any{}
	for name, one := range value.(map[string]any)["resources"].(map[string]any) {
		all[name] = one.(map[string]any)
	}
	return all
}

func TestFixtures(t *testing.T) {
	spec := Load(t)
	all := fixtures(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if spec.schemas[name] == nil {
			t.Errorf("no schema %s", name)
			continue
		}
		text, _ := json.Marshal(all[name])
		c := &checker{spec: spec, whole: map[string]bool{}, ids: map[string]bool{}}
		v, _ := c.decode(text)
		c.check(v, spec.schemas[name], "")
		for _, p := range c.problems {
			t.Errorf("%s: %s", name, p)
		}
	}
}
