package storing

import (
	"testing"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/secret"
)

// FuzzMethods checks that every file gives either methods or errors, and that no error contains a
// card number.
func FuzzMethods(f *testing.F) {
	for _, text := range []string{"account,payment_method\n1,pm_a\n2,pm_b\n",
		"account,payment_method,payment_method\n1,pm\n", "account,account,payment_method\n1,pm\n",
		`{"account":"1","payment_method":"4111 1111 1111 1111"}`, "account\n1", "\xEF\xBB\xBF[",
		"payment_method,account\n\"pm\n", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		methods, errs := parseMethods(content)
		if (len(methods) > 0) == (len(errs) > 0) {
			t.Fatalf("%d methods and the errors %q", len(methods), errs)
		}
		for account, token := range methods {
			if billing.CheckID("account", account) != nil || billing.CheckMethod(token) != nil {
				t.Errorf("account %q, method %q", account, token)
			}
		}
		for _, reason := range errs {
			if secret.HasCardNumber(reason) {
				t.Errorf("a card number in %q", reason)
			}
		}
	})
}
