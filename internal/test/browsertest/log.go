package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// An entry is an event of the network in the performance log.
type entry struct {
	Message struct {
		Method string
		Params struct {
			Type     string
			Request  struct{ URL string }
			Response struct {
				URL    string
				Status int
			}
			ErrorText string
		}
	}
}

// read reads a log. chromedriver empties it.
func (b *Browser) read(kind string) (all []map[string]any) {
	b.t.Helper()
	for _, x := range b.call(http.MethodPost, "/se/log", map[string]any{"type": kind}).([]any) {
		all = append(all, x.(map[string]any))
	}
	return all
}

// network reads what went over the network since the last time.
func (b *Browser) network() {
	b.t.Helper()
	for _, line := range b.read("performance") {
		var e entry
		if err := json.Unmarshal([]byte(line["message"].(string)), &e); err != nil {
			b.t.Fatal(err)
		}
		if p := e.Message.Params; e.Message.Method == "Network.responseReceived" && p.Type == "Document" {
			b.status = p.Response.Status
		}
		b.entries = append(b.entries, e)
	}
}

// Status returns the status of the last page's response.
func (b *Browser) Status() int {
	b.t.Helper()
	b.network()
	return b.status
}

// Troubles returns what the browser complained about since the last call, such as errors on the console and
// violations of the page's policy, and each request to another origin.
func (b *Browser) Troubles() (all []string) {
	b.t.Helper()
	b.network()
	for _, e := range b.entries {
		url := e.Message.Params.Request.URL
		if e.Message.Method == "Network.requestWillBeSent" && !strings.HasPrefix(url, b.origin+"/") && !strings.HasPrefix(url, "data:") {
			all = append(all, "a request elsewhere: "+url)
		}
	}
	b.entries = nil
	for _, line := range b.read("browser") {
		if level := line["level"]; level != "INFO" && level != "DEBUG" {
			all = append(all, fmt.Sprintf("console: %v", line["message"]))
		}
	}
	return all
}
