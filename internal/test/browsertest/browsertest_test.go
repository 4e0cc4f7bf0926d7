package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// good is a page without faults.
const good = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Good</title></head>
<body><main><h1>Good</h1><p>Text</p><form action="/posted" method="post"><label>Name <input name="name"></label><button>Send</button></form></main></body></html>`

// planted are faults of a page, and what says so.
var planted = []struct{ name, at, fault, want string }{
	{"an error", "</main>", `<script>console.error("broken")</script></main>`, "broken"},
	{"an exception", "</main>", `<script>nothing.at.all</script></main>`, "nothing is not defined"},
	{"a missing file", "</main>", `<img alt="" src="/missing.png"></main>`, "404"},
	{"another origin", "</main>", `<img alt="" src="http://localhost:9/x.png"></main>`, "a request elsewhere: http://localhost:9/x.png"},
	{"a style inline", "<p>", `<p style="color: red">`, "Content Security Policy"},
	{"a field without name", "</main>", `<input></main>`, "label: "},
	{"pale text", "<p>", `<p class="pale">`, "color-contrast: "},
	{"a wide page", "</main>", `<div class="wide">wide</div></main>`, "of 390 pixels: <div class=\"wide\""},
	{"a button out of reach", "</main>", `<button tabindex="-1">Delete</button></main>`, "Tab does not reach <button"},
	{"no focus", "</main>", `<button class="flat">Delete</button></main>`, "no focus is seen on <button"},
	{"pale in the dark", "<p>", `<p class="night">`, "color-contrast: "},
}

// TestStartDriver starts a chromedriver again whose port another process had taken.
func TestStartDriver(t *testing.T) {
	dir := t.TempDir()
	driver := filepath.Join(dir, "chromedriver")
	script := "#!/bin/sh\nif mkdir " + dir + "/first 2>/dev/null; then echo 'IPv4 port not available. Exiting...'; exit 1; fi\n" +
		"echo 'ChromeDriver was started successfully on port 1234.'\n"
	if err := os.WriteFile(driver, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if port := startDriver(t, driver, dir); port != "1234" {
		t.Errorf("port %q", port)
	}
}

// TestBrowser finds each fault planted in a page, and none in the page without.
func TestBrowser(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := good
		for i, p := range planted {
			if r.URL.Path == fmt.Sprint("/", i) {
				page = strings.Replace(page, p.at, p.fault, 1)
				if p.name == "a style inline" {
					w.Header().Set("Content-Security-Policy", "default-src 'self'")
				}
			}
		}
		switch r.URL.Path {
		case "/missing.png":
			w.WriteHeader(http.StatusNotFound)
		case "/posted":
			fmt.Fprintf(w, "<title>posted</title>%s", r.FormValue("name"))
		case "/favicon.ico":
		default:
			style := `<style>.pale { color: #ccc; background: #fff } .wide { width: 700px } .flat { outline: none }
				@media (prefers-color-scheme: dark) { .night { color: #333; background: #222 } }</style></head>`
			fmt.Fprint(w, strings.Replace(page, "</head>", style, 1))
		}
	}))
	t.Cleanup(server.Close)
	b := New(t, server.URL, false)
	check := func(path string) (all []string) {
		b.Look(false, false)
		if status := b.Visit(path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		all = append(b.Troubles(), b.Unreached()...)
		all = append(all, b.Barriers()...)
		b.Look(true, true)
		return append(append(all, b.Barriers()...), b.Overflow())
	}
	if all := strings.Join(check("/good"), ""); all != "" {
		t.Errorf("the page without faults: %s", all)
	}
	for i, p := range planted {
		if all := check(fmt.Sprint("/", i)); !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, p.want) }) {
			t.Errorf("%s: %q is not in %q", p.name, p.want, all)
		}
	}
	b.Visit("/good")
	b.Type("input", "Anna")
	b.Enter()
	if got := b.Text("body") + b.Path(); got != "Anna/posted" {
		t.Errorf("posted: %s", got)
	}
}

// TestBrowser_NoScript: pages run no script, and the test still can.
func TestBrowser_NoScript(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<p>before</p><noscript><i>none</i></noscript><script>document.querySelector("p").textContent = "after"</script><a href="/two">two</a>`)
	}))
	t.Cleanup(server.Close)
	b := New(t, server.URL, true)
	b.Visit("/")
	b.Open("a")
	if got := b.Text("p") + b.Path() + b.Run("return 'run'").(string); got != "before/tworun" {
		t.Errorf("got %s", got)
	}
}
