// Package browsertest drives a real Chromium in tests, over the WebDriver protocol of chromedriver.
//
// It knows nothing of the pages that tests open, and asserts nothing about them: Troubles returns what the
// browser complained about. Without Chromium a test is skipped, and under CI=true it fails.
package browsertest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// element is the name of an element's id in the protocol.
const element = "element-6066-11e4-a52e-4f735466cecf"

// A Browser is one window of a Chromium with a profile of its own. Its methods fail the test at an error.
type Browser struct {
	t       testing.TB
	session string // URL of the session at chromedriver
	client  *http.Client
	origin  string
	entries []entry // of the performance log, since the last Troubles
	status  int     // of the last page
}

// New starts Chromium for pages at an origin, such as http://127.0.0.1:8082. It ends with the test. With noScript,
// pages run no script.
func New(t testing.TB, origin string, noScript bool) *Browser {
	t.Helper()
	chromium, driver := need(t)
	// A folder of the system's, because the path of a socket in it is limited to 107 bytes.
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	b := &Browser{t: t, client: &http.Client{Timeout: 3 * time.Minute}, origin: strings.TrimSuffix(origin, "/")}
	b.open("http://127.0.0.1:"+startDriver(t, driver, profile), chromium, profile)
	t.Cleanup(func() {
		b.call(http.MethodDelete, "", nil)
		b.client.CloseIdleConnections()
	})
	b.protocol("Emulation.setScriptExecutionDisabled", map[string]any{"value": noScript})
	b.call(http.MethodPost, "/url", map[string]any{"url": "about:blank"}) // instead of the page of a new tab, which loads hundreds of files
	b.Troubles()
	return b
}

// need returns the programs. Without them it skips the test, or fails it under CI=true.
func need(t testing.TB) (chromium, driver string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser test takes seconds")
	}
	chromium, err := exec.LookPath("chromium")
	if err == nil {
		driver, err = exec.LookPath("chromedriver")
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED, NOT TESTED in a browser: apt-get install chromium chromium-driver")
	}
	if err != nil {
		t.Fatal(err)
	}
	return chromium, driver
}

// startDriver starts chromedriver until the end of the test, and returns its port.
//
// Chromedriver takes any free port of IPv6 and then the same port of IPv4, and exits if that one is in use: it is
// started again then.
func startDriver(t testing.TB, driver, profile string) (port string) {
	t.Helper()
	var out string
	for range 10 {
		command := exec.Command(driver, "--port=0")
		command.Env = append(os.Environ(), "TMPDIR="+profile, "HOME="+profile)
		stdout, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait() // killed
		})
		if port, out = readPort(stdout); port != "" || !strings.Contains(out, "port not available") {
			break
		}
	}
	if port == "" {
		t.Fatalf("chromedriver did not start: %s", out)
	}
	return port
}

// readPort reads the port that chromedriver has chosen, and discards what it prints later. Without a port, all is
// what it printed before it exited.
func readPort(out io.Reader) (port, all string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := regexp.MustCompile(`started successfully on port (\d+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1], ""
		}
		all += lines.Text() + "\n"
	}
	return "", all
}

// open starts Chromium. It reaches no host but this machine, and its own services are off.
func (b *Browser) open(driver, chromium, profile string) {
	b.t.Helper()
	options := map[string]any{"binary": chromium, "args": []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync", "--disable-extensions",
		"--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + profile,
		"--window-size=1280,900"}, "perfLoggingPrefs": map[string]any{"enableNetwork": true, "enablePage": false}}
	b.session = driver + "/session"
	value := b.call(http.MethodPost, "", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{"browserName": "chrome",
		"goog:chromeOptions": options, "goog:loggingPrefs": map[string]any{"browser": "ALL", "performance": "ALL"}}}})
	b.session += "/" + value.(map[string]any)["sessionId"].(string)
}

// call sends a command, and returns its value.
func (b *Browser) call(method, path string, in any) any {
	b.t.Helper()
	value, err := b.try(method, path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// try sends a command, and returns its value or what chromedriver says is wrong.
func (b *Browser) try(method, path string, in any) (any, error) {
	body := io.Reader(http.NoBody)
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, b.session+path, body) // without the test's context, which has ended when sessions are closed
	if err != nil {
		return nil, err
	}
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var got struct{ Value any }
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		wrong, _ := got.Value.(map[string]any)
		message, _, _ := strings.Cut(fmt.Sprint(wrong["message"]), "\n")
		return nil, fmt.Errorf("chromedriver: %s %s: %v: %s", method, path, wrong["error"], message)
	}
	return got.Value, nil
}

// protocol sends a command of the DevTools protocol.
func (b *Browser) protocol(command string, params map[string]any) {
	b.t.Helper()
	b.call(http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": command, "params": params})
}

// Visit opens the page at a path of the origin, and returns the status of its response.
func (b *Browser) Visit(path string) int {
	b.t.Helper()
	b.call(http.MethodPost, "/url", map[string]any{"url": b.origin + path})
	return b.Status()
}

// Path returns the page's path with its query.
func (b *Browser) Path() string {
	b.t.Helper()
	return strings.TrimPrefix(b.call(http.MethodGet, "/url", nil).(string), b.origin)
}

// find returns the path of the first element. A selector that begins with / is XPath, and others are CSS.
func (b *Browser) find(selector string) string {
	b.t.Helper()
	using := "css selector"
	if strings.HasPrefix(selector, "/") {
		using = "xpath"
	}
	found, err := b.try(http.MethodPost, "/element", map[string]any{"using": using, "value": selector})
	if err != nil {
		b.t.Fatalf("%s on %s: %v\n%s", selector, b.Path(), err, b.Text("/html/body"))
	}
	return "/element/" + found.(map[string]any)[element].(string)
}

// Click clicks the element, which opens no page.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.call(http.MethodPost, b.find(selector)+"/click", map[string]any{})
}

// Open clicks the link or button, and waits for the page that it opens.
func (b *Browser) Open(selector string) {
	b.t.Helper()
	b.leave(func() { b.Click(selector) })
}

// Enter presses the Enter key, and waits for the page that it opens.
func (b *Browser) Enter() {
	b.t.Helper()
	b.leave(func() { b.Press("\uE007") })
}

// leave does what opens another page, and waits for that page. chromedriver does not wait for what a busy browser
// begins late.
func (b *Browser) leave(do func()) {
	b.t.Helper()
	b.Run("window.left = true")
	from := b.Path()
	do()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		there, err := b.try(http.MethodPost, "/execute/sync", map[string]any{"args": []any{},
			"script": `return !window.left && document.readyState === "complete"`})
		if err == nil && there == true {
			return
		}
	}
	b.t.Fatalf("no page came after %s: %s", from, b.Text("/html/body"))
}

// Type types the text into the field.
func (b *Browser) Type(selector, text string) {
	b.t.Helper()
	b.call(http.MethodPost, b.find(selector)+"/value", map[string]any{"text": text})
}

// Text returns the element's text as it is shown.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	for try := 0; ; try++ { // the page may load itself again in between
		text, err := b.try(http.MethodGet, b.find(selector)+"/text", nil)
		if err == nil {
			return text.(string)
		}
		if try == 10 || !strings.Contains(err.Error(), "stale element") {
			b.t.Fatal(err)
		}
	}
}

// Run runs the body of a function in the page, past its policy, and returns what the function returns.
func (b *Browser) Run(script string, args ...any) any {
	b.t.Helper()
	return b.call(http.MethodPost, "/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)})
}

// Keys of Press.
const (
	Tab   = "\uE004"
	Space = "\uE00D"
)

// Press presses the keys one after the other, wherever the focus is.
func (b *Browser) Press(keys string) {
	b.t.Helper()
	var actions []any
	for _, key := range keys {
		for _, kind := range []string{"keyDown", "keyUp"} {
			actions = append(actions, map[string]any{"type": kind, "value": string(key)})
		}
	}
	b.call(http.MethodPost, "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keys", "actions": actions}}})
}

// Look shows the page with the person's preference for dark pages, in a window or on a phone 390 pixels wide.
func (b *Browser) Look(dark, phone bool) {
	b.t.Helper()
	scheme, width, height := "light", 1280, 900
	if dark {
		scheme = "dark"
	}
	if phone {
		width, height = 390, 844
	}
	b.protocol("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
	b.protocol("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
}

// Screenshot writes a picture of the light page to the file: 1280 pixels wide, of the given height, without scrollbars.
func (b *Browser) Screenshot(file string, height int) {
	b.t.Helper()
	b.Look(false, false)
	b.protocol("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.Run(`document.documentElement.style.scrollbarWidth = "none"`)
	picture, err := base64.StdEncoding.DecodeString(b.call(http.MethodGet, "/screenshot", nil).(string))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
