package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	fenced  = regexp.MustCompile("(?s)```.*?```")
	mark    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that a renderer gives the headings of a page.
func anchors(page string) map[string]bool {
	list := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		list[strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return list
}

// broken returns the links of a page to files and headings that are not there.
func broken(name, page string, pages map[string]string) (list []string) {
	for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		if strings.Contains(l[1], "://") || strings.HasPrefix(l[1], "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(l[1], "#")
		to := name
		if file != "" {
			to = path.Join(path.Dir(name), file)
		}
		text, there := pages[to]
		if !there && !strings.HasSuffix(file, ".md") { // a folder or a picture: not a page
			continue
		}
		if !there || anchor != "" && !anchors(text)[anchor] {
			list = append(list, name+": "+l[1])
		}
	}
	return list
}

// TestLinksOfDocuments: each link of a page leads to a page, and to a heading of it.
func TestLinksOfDocuments(t *testing.T) {
	pages := map[string]string{}
	for name, text := range texts(t) {
		if strings.HasSuffix(name, ".md") {
			pages[name] = text
		}
	}
	planted := map[string]string{"x/a.md": "# One `two`\n[x](#one-two) [y](b.md#none) [z](c.md)", "x/b.md": "## Here"}
	if got := broken("x/a.md", planted["x/a.md"], planted); strings.Join(got, "; ") != "x/a.md: b.md#none; x/a.md: c.md" {
		t.Errorf("planted: %q", got)
	}
	for name, text := range pages {
		for _, l := range broken(name, text, pages) {
			t.Error(l)
		}
	}
}
