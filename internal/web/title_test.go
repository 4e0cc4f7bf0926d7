package web_test

import (
	"encoding/json"
	"testing"

	"github.com/duesday/duesday/internal/openapi"
	"github.com/duesday/duesday/internal/web"
)

// TestTitles: the titles of codes are the same as in openapi.json, which has all codes of routes.
func TestTitles(t *testing.T) {
	var d struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Codes map[string]struct{ Title string } `json:"x-codes"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(openapi.Text()), &d); err != nil {
		t.Fatal(err)
	}
	codes := d.Components.Schemas.Problem.Codes
	for code, title := range web.Titles {
		if got := codes[code].Title; got != title && code != "unready" { // health is not part of /v1
			t.Errorf("%s: the title is %q, and in openapi.json %q", code, title, got)
		}
	}
}
