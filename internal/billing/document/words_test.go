package document

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/duesday/duesday/internal/locale"
)

// TestWords: each language has each text that the page or the code uses, and no other.
func TestWords(t *testing.T) {
	used := map[string]bool{}
	for _, name := range []string{"content.go", "document.go", "page.html"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?:Word\(|Word |fact\(|key(?:, done)? :?= |notice\(language, )"(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			used[found[1]] = true
		}
	}
	for _, key := range []string{"receipt", "invoice", "missing_text", "later_text"} { // made of others
		used[key] = true
	}
	for _, language := range locale.Languages() {
		words := parsed().words[language]
		if got, want := slices.Sorted(maps.Keys(words)), slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
			t.Errorf("%s: has\n%q, used are\n%q", language, got, want)
		}
		for key, text := range words {
			if text == "" || text != locale.Clean(text) {
				t.Errorf("%s: %s is %q", language, key, text)
			}
			if language != "en" && text == parsed().words["en"][key] {
				t.Errorf("%s: %s is English", language, key)
			}
		}
	}
}
