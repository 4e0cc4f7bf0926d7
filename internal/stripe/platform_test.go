package stripe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/duesday/duesday/internal/processor"
	"github.com/duesday/duesday/internal/test/apitest"
	"github.com/duesday/duesday/stripefake"
)

func accountReply(id string) apitest.Reply {
	return apitest.OK(apitest.Object(apitest.Fields{"id": id, "object": "account"}))
}

func TestCheckConnected(t *testing.T) {
	forbidden := apitest.Fails(403,
		apitest.Fields{"type": "invalid_request_error", "code": "account_invalid", "message": "m"})
	for name, tt := range map[string]struct {
		at      string
		replies []apitest.Reply
		text    string // of the error
		want    error
	}{
		"connected": {"acct_2", []apitest.Reply{accountReply("acct_1"), accountReply("acct_2")}, "", nil},
		"our own": {"acct_1", []apitest.Reply{accountReply("acct_1")}, "acct_1 is the platform's own Stripe account",
			processor.ErrInvalid},
		"our own, by no name": {"", nil, "must be acct_…", processor.ErrInvalid},
		"a customer":          {"cus_1", nil, "must be acct_…", processor.ErrInvalid},
		"a path":              {"acct_1/../x", nil, "must be acct_…", processor.ErrInvalid},
		"a stranger's":        {"acct_2", []apitest.Reply{accountReply("acct_1"), forbidden}, "", processor.ErrAccountRefused},
		"our key": {"acct_2",
			[]apitest.Reply{apitest.Fails(401, apitest.Fields{"type": "invalid_request_error"})}, "", processor.ErrRefused},
		"another's answer": {"acct_2", []apitest.Reply{accountReply("acct_1"), accountReply("acct_3")}, "",
			processor.ErrUnknown},
		"our own answer": {"acct_2", []apitest.Reply{accountReply("acct_1"), accountReply("acct_1")}, "", processor.ErrUnknown},
		"no answer":      {"acct_2", []apitest.Reply{apitest.OK("{}")}, "", processor.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := apitest.NewScript(t, tt.replies...)
			err := scripted(t, s).CheckConnected(t.Context(), tt.at)
			if !errors.Is(err, tt.want) || tt.text != "" && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			for i, r := range s.Requests() {
				if want := []string{"", tt.at}[i]; r.Path != "/v1/account" || r.Header.Get("Stripe-Account") != want {
					t.Errorf("asked %s of %q, want of %q", r.Path, r.Header.Get("Stripe-Account"), want)
				}
			}
		})
	}
}

func TestConnected(t *testing.T) {
	item := func(id string) string { return accountReply(id).Body }
	s := apitest.NewScript(t, apitest.List(true, item("acct_1"), item("acct_2")), apitest.List(false, item("acct_3")))
	p := scripted(t, s)
	var got []string
	for id, err := range p.Connected(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	if want := []string{"acct_1", "acct_2", "acct_3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r := s.Requests()[1]; r.Path != "/v1/accounts" || r.Form.Get("starting_after") != "acct_2" ||
		r.Header.Get("Stripe-Account") != "" {
		t.Errorf("sent %s %v", r.Path, r.Form)
	}
	for name, tt := range map[string]struct {
		reply apitest.Reply
		want  error
	}{"our key": {apitest.Fails(403, apitest.Fields{"type": "invalid_request_error"}), processor.ErrRefused},
		"what is no account": {apitest.List(false, item("cus_1")), processor.ErrUnknown}} {
		var last error
		for id, err := range scripted(t, apitest.NewScript(t, tt.reply)).Connected(t.Context()) {
			if last = err; err == nil {
				t.Errorf("%s: got %q", name, id)
			}
		}
		apitest.WantError(t, name, last, tt.want)
	}
}

func TestFake_Connected(t *testing.T) {
	p, fake := stateful(t)
	for _, at := range []string{"acct_a", "acct_b"} {
		if err := fake.Connect(at, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := fake.Disconnect("acct_a"); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]error{"acct_b": nil, "acct_a": processor.ErrAccountRefused,
		"acct_nobody": processor.ErrAccountRefused, stripefake.DefaultAccount: processor.ErrInvalid} {
		if err := p.CheckConnected(t.Context(), at); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", at, err, want)
		}
	}
	var all []string
	for id, err := range p.Connected(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	if !slices.Equal(all, []string{"acct_b"}) {
		t.Errorf("connected are %v, want acct_b", all)
	}
}
