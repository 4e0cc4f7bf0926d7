package archtest

import (
	"slices"
	"strings"
	"testing"
)

// layers says for every package which of ours it may import. Imports run one way:
// {httpapi, mail, book} -> {billing, tracking, outbox} -> {schema, store} -> nothing of ours;
// {billing, stripe, sandbox} -> processor; billing and tracking do not know each other.
// {serving, rehearsal} -> {runs, sales} -> bookkeeping -> session -> these, for families of commands.
// Commands are at the top and import anything but engines, which storeurl opens for them
// (but see administered); nobody imports a command. Tests may import what they need.
var layers = map[string][]string{
	"internal/billing/cardless":   {"schema", "secret", "store"},
	"internal/billing/cardupdate": {"billing", "billing/account", "billing/wallet", "call", "civil", "processor", "store"},
	"internal/billing/job": {"billing", "billing/charging", "billing/engine", "billing/worker", "call", "civil",
		"clock", "money", "processor", "schema", "secret", "sequence", "store"},
	"internal/billing/invoice": {"billing", "billing/price", "billing/settings", "civil", "schema", "store"},
	"internal/billing/outlook": {"billing", "billing/engine", "billing/report", "billing/settings", "billing/worker", "civil", "clock",
		"money", "schema", "store"},
	"internal/billing/numbering":  {"billing", "billing/invoice", "billing/settings", "billing/worker", "schema", "store"},
	"internal/billing/planchange": {"billing", "billing/price", "civil", "money", "store"},
	"internal/billingapi": {"billing", "billing/account", "billing/charging", "billing/document", "billing/due",
		"billing/engine", "billing/job", "billing/outlook", "billing/party", "billing/payout", "billing/planchange", "billing/portal", "billing/price", "billing/refund",
		"billing/report", "billing/settings", "billing/tax", "billing/upgrade", "billing/worker", "call", "civil", "customer", "delivery", "field",
		"history", "key", "lookup", "maillog", "money", "outbox", "person", "processor", "schema", "secret", "sequence", "status", "store",
		"takeover", "view", "web"},
	"internal/command/bookkeeping": {"billing", "billing/account", "billing/charging", "billing/document",
		"billing/engine", "billing/party", "billing/payout", "billing/planchange", "billing/portal", "billing/price", "billing/proof", "billing/refund",
		"billing/report", "billing/settings", "billing/tax", "billing/taxchange", "billing/upgrade", "book", "civil", "history", "importing", "lookup", "money", "person",
		"processor", "screen", "secret", "sequence", "session", "store", "view"},
	"internal/command/rehearsal": {"billing", "billing/audit", "billing/engine", "call", "civil", "command/runs",
		"config", "demo", "listen", "screen", "secret", "server", "session", "store", "stripefake", "view"},
	"internal/command/runs": {"billing", "billing/audit", "billing/charging", "billing/due", "billing/engine",
		"billing/job", "billing/replaced", "billing/report", "billing/worker", "civil", "command/bookkeeping", "money",
		"outbox", "person", "processor", "screen", "sequence", "session", "store", "view"},
	"internal/command/sales": {"billing", "billing/settings", "config", "money", "person", "processor", "screen", "secret", "sequence",
		"server", "session", "store", "stripe", "stripe/event", "stripe/sell", "takeover", "tracking", "tracking/poller", "view"},
	"internal/command/serving": {"billing", "billing/charging", "billing/engine", "billing/job", "billing/settings",
		"billing/worker", "billingapi", "call", "civil", "clock", "command/runs", "command/sales", "config", "customer",
		"day", "delivery", "httpapi", "key", "mail", "maillog", "outbox", "pages", "schedule", "screen", "secret", "sequence", "server", "session",
		"status", "store", "store/dynamostore", "store/dynamotable", "stripe/api", "stripe/sell", "systemd", "tracking", "view", "web"},
	"internal/command/storing": {"billing", "billing/adoption", "billing/engine", "billing/move", "billing/settings",
		"capacity", "field", "key", "lookup", "schema", "schema/cloudformation", "schema/iam", "schema/workbench",
		"screen", "secret", "session", "store", "store/dynamostore", "store/dynamotable", "store/storeurl", "tracking",
		"transfer", "view"},
	"internal/billing/document": {"billing", "billing/invoice", "billing/numbering", "billing/price", "billing/settings", "locale", "money",
		"processor", "sealed", "store"},
	"internal/billing/portal": {"billing", "billing/account", "billing/settings", "call", "processor", "schema", "sealed", "store"},
	"internal/sealed":         {},
	"internal/customer": {"billing", "billing/document", "billing/portal", "billing/price", "billing/settings", "billing/wallet", "call", "civil",
		"history", "locale", "money", "processor", "secret", "store"},
	"internal/dryrun":         {"processor", "sequence", "store"},
	"internal/pages":          {"key", "money", "secret", "web"},
	"internal/delivery":       {"call", "field", "outbox", "schema", "secret", "store"},
	"internal/delivery/cause": {"billing", "billing/numbering", "delivery", "outbox", "processor", "schema", "store"},
	"internal/history":        {"billing", "billing/settings", "call", "schema", "store"},
	"internal/lookup":         {"billing", "processor", "schema", "secret", "sequence", "store"},
	"internal/person":         {"billing", "billing/audit", "billing/job", "call", "history", "maillog", "outbox", "schema", "store", "tracking"},
	"internal/test/archtest":  {},
	// pebblestore: for its options, and to wait until it is idle
	"cmd/duesday-bench/bench": {"billing", "billing/bulk", "billing/engine", "billing/job", "civil", "httpapi",
		"listen", "sandbox", "schema", "secret", "store/pebblestore", "stripe/event", "stripefake", "test/consumption",
		"tracking", "web"},
	"internal/billing": {"billing/cardless", "billing/party", "billing/price", "billing/tax", "call", "civil", "field", "money",
		"processor", "schema", "secret", "sequence", "store"},
	"internal/billing/account": {"billing", "billing/party", "call", "schema", "store"},
	"internal/billing/adoption": {"billing", "billing/cardless", "billing/report", "billing/settings", "civil",
		"history", "lookup", "schema", "secret", "store"},
	"internal/billing/audit": {"billing", "billing/kept", "billing/numbering", "billing/price", "billing/report",
		"billing/reversal", "billing/settings", "civil", "clock", "history", "lookup", "money", "processor", "schema",
		"secret", "store"},
	"internal/billing/bulk":      {"billing", "call", "civil", "store"},
	"internal/billing/party":     {"field"},
	"internal/billing/price":     {"billing/party", "field", "money", "store"},
	"internal/billing/kept":      {},
	"internal/billing/taxchange": {"billing", "billing/price", "billing/tax"},
	"internal/billing/tax":       {"billing/party", "billing/price", "field", "money"},
	"internal/billing/proof":     {"billing", "billing/kept", "billing/reversal", "civil", "processor"},
	"internal/billing/replaced": {"billing", "billing/party", "billing/price", "billing/settings", "civil", "money",
		"outbox", "processor", "schema", "secret", "store"},
	"internal/billing/charging": {"billing", "billing/worker", "call", "processor", "schema", "secret", "store"},
	"internal/billing/due":      {"billing"},
	"internal/billing/meta":     {"billing", "civil", "schema", "store"},
	"internal/billing/notice":   {"billing", "billing/price", "civil", "money", "outbox", "processor"},
	"internal/billing/engine": {"billing", "billing/account", "billing/audit", "billing/cardupdate", "billing/charging",
		"billing/kept", "billing/meta", "billing/notice", "billing/numbering", "billing/planchange", "billing/price", "billing/proof",
		"billing/refund", "billing/report", "billing/reversal", "billing/settings", "billing/tax", "billing/upgrade", "billing/wallet", "billing/worker", "call", "civil",
		"dryrun", "history", "lookup", "money", "outbox", "processor", "schema", "secret", "store"},
	"internal/billing/payout": {"billing", "billing/settings", "civil", "money", "processor"},
	"internal/billing/recipient": {"billing", "billing/account", "billing/numbering", "billing/portal", "billing/wallet", "civil", "outbox", "processor",
		"schema", "store"},
	"internal/billing/refund": {"billing", "billing/price", "call", "money", "processor", "secret", "store"},
	"internal/billing/report": {"billing", "billing/price", "billing/settings", "billing/tax", "civil", "money", "outbox", "processor", "schema",
		"sequence", "store"},
	"internal/billing/reversal": {"billing", "civil", "money", "processor"},
	"internal/billing/upgrade":  {"billing", "billing/price", "civil", "money"},
	"internal/billing/wallet":   {"billing", "billing/account", "call", "processor", "store"},
	"internal/billing/worker":   {"billing", "civil", "clock", "schema", "store"},
	"internal/billing/settings": {"billing", "billing/party", "billing/price", "billing/tax", "call", "schedule", "schema", "store"},
	"internal/billing/move":     {"billing", "schema", "store"},
	"internal/book":             {"billing", "billing/party", "billing/price", "billing/settings", "civil", "money", "schema", "secret"},
	"internal/call":             {"schema", "store"},
	"internal/capacity":         {"billing", "billing/job"},
	"internal/civil":            {},
	"internal/clock":            {},
	"internal/config":           {"secret"},
	"internal/day":              {"billing", "clock", "schedule"},
	"internal/demo":             {"billing", "billing/bulk", "billing/engine", "billing/job", "civil", "money", "processor", "store"},
	"internal/field":            {},
	"internal/httpapi":          {"call", "field", "key", "secret", "sequence", "store", "tracking", "view", "web"},
	"internal/importing": {"billing", "billing/account", "billing/bulk", "billing/engine", "billing/party",
		"billing/price", "billing/settings", "billing/tax", "book", "civil", "processor", "sandbox", "secret", "store"},
	"internal/key":       {"call", "field", "schema", "secret", "sequence", "store"},
	"internal/listen":    {},
	"internal/locale":    {"money"},
	"internal/mail":      {"billing/settings", "locale", "money", "outbox"},
	"internal/mail/smtp": {"mail", "outbox", "secret"},
	"internal/maillog":   {"mail/smtp", "outbox", "schema", "secret", "sequence", "store"},
	"internal/manual":    {},
	"internal/money":     {},
	"internal/openapi":   {"web"},
	"internal/outbox":    {"call", "schema", "sequence", "store"},
	"internal/processor": {"civil", "money"},
	"internal/sequence":  {},
	"internal/sandbox":   {"clock", "money", "processor", "socket"},
	"internal/schedule":  {"civil"},
	"internal/schema":    {"store"},
	"internal/screen":    {"billing", "civil", "money", "secret", "sequence", "view"},
	"internal/secret":    {},
	"internal/server": {"clock", "httpapi", "listen", "openapi", "outbox", "secret", "sequence", "stripe/event",
		"tracking", "tracking/poller", "view", "web"},
	"internal/status": {"billing", "billing/engine", "billing/job", "billing/settings", "billing/worker", "civil",
		"delivery", "outbox", "processor", "schedule", "schema", "secret", "socket", "store", "tracking"},
	"internal/stripe":       {"processor", "secret", "sequence", "stripe/api", "civil"},
	"internal/stripe/api":   {"clock", "money", "processor", "secret"},
	"internal/test/apitest": {"money", "stripefake", "test/stripetest"},
	"internal/stripe/event": {"secret", "stripe/api", "tracking"},
	"internal/stripe/sell":  {"money", "secret", "stripe/api", "stripe/event", "tracking", "tracking/poller"},
	// the fake of Stripe must not know what it is used for: {page, billing} -> payment -> api -> shape
	"stripefake": {"stripefake/internal/api", "stripefake/internal/billing", "stripefake/internal/page",
		"stripefake/internal/payment", "stripefake/internal/shape"},
	"stripefake/internal/api":     {"stripefake/internal/shape"},
	"stripefake/internal/billing": {"stripefake/internal/api", "stripefake/internal/payment", "stripefake/internal/shape"},
	"stripefake/internal/page": {"stripefake/internal/api", "stripefake/internal/payment",
		"stripefake/internal/shape"},
	"stripefake/internal/payment": {"stripefake/internal/api", "stripefake/internal/shape"},
	"stripefake/internal/shape":   {},
	"internal/test/stripetest":    {},
	"internal/test/consumption": {"billing", "billing/bulk", "billing/engine", "billing/job", "billing/numbering",
		"billing/outlook", "billing/recipient", "billing/report", "civil", "maillog", "money", "outbox", "sandbox", "schema", "store",
		"store/memstore", "test/metering"},
	"internal/test/metering":         {"capacity", "store"},
	"internal/tracking":              {"call", "field", "money", "outbox", "schema", "secret", "sequence", "store"},
	"internal/tracking/poller":       {"secret", "tracking"},
	"internal/schema/cloudformation": {"schema", "store"},
	"internal/schema/iam":            {"schema"},
	"internal/schema/workbench":      {"schema", "store"},
	"internal/session": {"billing", "billing/charging", "billing/document", "billing/engine", "billing/job", "billing/meta",
		"billing/numbering", "billing/outlook", "billing/recipient", "billing/report", "billing/settings", "billing/wallet", "call", "civil", "clock", "config",
		"delivery", "delivery/cause", "field", "key", "locale", "mail", "mail/smtp", "maillog", "outbox", "person", "processor", "sandbox",
		"schema", "screen", "secret", "status", "store", "store/dynamostore", "store/dynamotable", "store/storeurl",
		"stripe", "stripe/api", "stripefake", "transfer", "view", "web"},
	"internal/socket":  {},
	"internal/systemd": {},
	// memstore: the store that its engines share
	"internal/test/shop": {"billing", "billing/engine", "civil", "money", "processor", "sandbox", "schema", "store",
		"store/memstore"},
	"internal/test/browsertest":  {"test/npmtest"},
	"internal/test/soaktest":     {},
	"internal/test/spectest":     {"key", "openapi", "web"},
	"internal/store":             {},
	"internal/store/dynamostore": {"clock", "store"},
	"internal/store/dynamotable": {"clock", "store"},
	"internal/test/dynamotest":   {},
	"internal/store/folder":      {"clock", "socket", "store", "store/link", "store/pebblestore"},
	// pebblestore: items cross the connection in the form in which the folder keeps them
	"internal/store/link":        {"store", "store/pebblestore"},
	"internal/store/memstore":    {"store"},
	"internal/store/pebblestore": {"socket", "store"},
	"internal/test/pebbletest":   {},
	"internal/test/storetest":    {"store"},
	"internal/store/storeurl": {"store", "store/dynamostore", "store/dynamotable", "store/folder", "store/memstore",
		"store/pebblestore"},
	// folder, pebblestore: a backup is a copy of its folder, made by its holder
	"internal/transfer": {"billing", "billing/engine", "billing/move", "billing/numbering", "clock", "lookup", "schema",
		"store", "store/folder", "store/pebblestore"},
	"internal/view": {"billing", "billing/audit", "billing/engine", "billing/job", "billing/party", "billing/payout", "billing/price",
		"billing/planchange", "billing/proof", "billing/report", "billing/settings", "billing/taxchange", "billing/upgrade", "civil", "delivery", "history", "key", "maillog",
		"money", "outbox", "person", "processor", "secret", "status", "store", "takeover", "tracking", "tracking/poller"},
	"internal/takeover": {"billing", "billing/engine", "billing/price", "billing/settings", "call", "civil", "lookup", "processor", "sequence", "tracking"},
	"internal/web":      {"call", "field", "key", "listen", "secret", "store"},
}

// administered is what commands import of the packages under store: besides storeurl, what
// makes and drops DynamoDB's tables, and the engine's Dial for it.
var administered = []string{"internal/store/storeurl", "internal/store/dynamotable", "internal/store/dynamostore"}

func imports(s *source, p *pkg) (found []violation) {
	allowed, known := layers[p.dir]
	for _, f := range p.files {
		for name, at := range f.imports() {
			ours, ok := strings.CutPrefix(name, module+"/")
			switch {
			case !ok:
			case strings.HasPrefix(ours, "cmd/") && !p.isCommand():
				found = append(found, s.at(f, at, "%s is a command: nobody imports it", ours))
			case f.test:
			case p.isCommand():
				if strings.HasPrefix(ours, "internal/store/") && !slices.Contains(administered, ours) {
					found = append(found, s.at(f, at, "%s must not import %s: storeurl opens it", p.dir, ours))
				}
			case !known:
				found = append(found, s.at(f, at, "%s is in no layer: say in layers, in archtest, what it may import", p.dir))
			case !slices.Contains(allowed, strings.TrimPrefix(ours, "internal/")):
				found = append(found, s.at(f, at, "%s must not import %s (it may import %v)", p.dir, ours, allowed))
			}
		}
	}
	return found
}

func TestImportsRunOneWay(t *testing.T) {
	importing := func(path string) string { return "package p\nimport _ \"" + module + "/" + path + "\"" }
	check(t, imports, nil,
		plant{"internal/civil/p.go", importing("internal/store"), "internal/civil must not import internal/store"},
		plant{"internal/store/pebblestore/p.go", importing("internal/schema"), "must not import internal/schema"},
		plant{"internal/billing/p.go", importing("internal/store/pebblestore"), "must not import internal/store/pebblestore"},
		plant{"internal/outbox/p.go", importing("internal/billing"), "must not import internal/billing"},
		plant{"internal/sandbox/p.go", importing("cmd/duesday/table"), "nobody imports it"},
		plant{"cmd/duesday/p.go", importing("internal/store/pebblestore"), "storeurl opens it"},
		plant{"internal/novel/p.go", importing("internal/store"), "in no layer"})
}

// thirdParty says for every module of others where it may be used, and so what the
// product depends on. A new dependency is a decision, and is made here.
var thirdParty = map[string]struct {
	in        []string
	testsIn   []string // where tests alone may use it as well
	testsOnly bool
}{
	"github.com/RaduBerinde/btreemap": {in: []string{"internal/store/memstore"}}, // Pebble's own ordered map, with cheap copies
	"github.com/aws/aws-sdk-go-v2": {in: []string{"internal/store/dynamostore", "internal/store/dynamotable",
		"internal/test/dynamotest"}, // its client, service/dynamodb
		testsIn: []string{"internal/billing/engine", "internal/schema/cloudformation",
			"cmd/duesday"}}, // the published access patterns and model, by plain calls; the template as CreateTable
	"github.com/aws/smithy-go": {in: []string{"internal/store/dynamostore"}}, // the errors of that client
	"github.com/cockroachdb/pebble/v2": {in: []string{"internal/store/pebblestore", "internal/test/pebbletest",
		"cmd/duesday-bench/bench"}, // bench: the bare baseline
		testsIn: []string{"internal/billing/engine"}}, // its file system, which forgets what was not synced
	"github.com/klauspost/compress":       {in: []string{"internal/tracking"}}, // S2, for the bodies of events
	"github.com/prometheus/client_golang": {in: []string{"internal/status"}},   // the format of metrics; Pebble has it anyway
	"github.com/spf13/cobra": {in: []string{"internal/command/rehearsal", "internal/command/serving", "internal/command/runs", "internal/command/bookkeeping", "internal/command/storing", "internal/command/sales", "internal/screen", "internal/session", "cmd/duesday", "cmd/duesday-bench",
		"internal/manual"}},
	"github.com/spf13/pflag": {in: []string{"internal/command/serving", "internal/command/bookkeeping", "internal/command/storing", "internal/screen", "internal/session", "cmd/duesday", "internal/manual"}},
	"github.com/stripe/stripe-go/v86": {in: []string{"internal/stripe", "internal/stripe/api"},
		testsIn: []string{"stripefake/internal/librarytest"}}, // it points that library at the fake
	"github.com/wneessen/go-mail":   {in: []string{"internal/mail/smtp"}}, // its SMTP client alone
	"github.com/emersion/go-smtp":   {testsOnly: true},                    // a mail server for tests
	"github.com/emersion/go-sasl":   {testsOnly: true},                    // its log-in
	"github.com/getkin/kin-openapi": {testsOnly: true},                    // it validates answers against openapi.json
	"golang.org/x/term":             {in: []string{"internal/screen"}},
	"pgregory.net/rapid":            {testsOnly: true},
}

func dependencies(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		for name, at := range f.imports() {
			first, _, _ := strings.Cut(name, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(name, module+"/") {
				continue // the standard library's, or ours
			}
			known := false
			for of, where := range thirdParty {
				if name != of && !strings.HasPrefix(name, of+"/") {
					continue
				}
				known = true
				switch {
				case where.testsOnly && !f.test && !p.isTest():
					found = append(found, s.at(f, at, "%s is for tests", of))
				case f.test && slices.Contains(where.testsIn, p.dir):
				case !where.testsOnly && !slices.Contains(where.in, p.dir):
					found = append(found, s.at(f, at, "%s is imported in %v alone", of, where.in))
				}
			}
			if !known {
				found = append(found, s.at(f, at,
					"%s is a new dependency: justify it in the commit and list it in thirdParty, in archtest", name))
			}
		}
	}
	return found
}

func TestDependenciesHaveTheirPlace(t *testing.T) {
	check(t, dependencies, nil,
		plant{"internal/billing/p.go", "package p\nimport _ \"github.com/cockroachdb/pebble/v2/vfs\"",
			"imported in [internal/store/pebblestore"},
		plant{"internal/money/p.go", "package p\nimport _ \"pgregory.net/rapid\"", "is for tests"},
		plant{"cmd/duesday/p.go", "package p\nimport _ \"github.com/jinzhu/gorm\"", "new dependency"})
}

// testPackages: test support is not part of the product. The benchmarks may import it.
func testPackages(s *source, p *pkg) (found []violation) {
	for _, f := range p.sources() {
		for name, at := range f.imports() {
			ours, isOurs := strings.CutPrefix(name, module+"/")
			if name == "testing" || strings.HasPrefix(name, "testing/") ||
				isOurs && testSupport(ours) && !strings.HasPrefix(p.dir, "cmd/duesday-bench") {
				found = append(found, s.at(f, at, "%s is for tests", name))
			}
		}
	}
	return found
}

func TestTestPackagesStayInTests(t *testing.T) {
	check(t, testPackages, nil,
		plant{"internal/billing/p.go", "package p\nimport _ \"" + module + "/internal/test/storetest\"", "is for tests"},
		plant{"cmd/duesday/p.go", "package p\nimport _ \"testing\"", "is for tests"})
}

// experiments may change under us.
func experiments(s *source, p *pkg) (found []violation) {
	for _, f := range p.files {
		for name, at := range f.imports() {
			if name == "encoding/json/v2" || name == "encoding/json/jsontext" || strings.HasPrefix(name, "golang.org/x/exp") {
				found = append(found, s.at(f, at, "%s is an experiment, outside the compatibility promise", name))
			}
			if name == "unsafe" || name == "C" {
				found = append(found, s.at(f, at, "%s: the product is plain Go", name))
			}
		}
	}
	return found
}

func TestNoExperiments(t *testing.T) {
	check(t, experiments, nil,
		plant{"internal/book/p.go", "package p\nimport _ \"encoding/json/v2\"", "is an experiment"},
		plant{"internal/book/p.go", "package p\nimport _ \"unsafe\"", "plain Go"})
}
