package stripetest

import (
	"net/http"
	"testing"
)

func TestMockAnswers(t *testing.T) {
	url := Mock(t)
	response, err := http.Get(url + "/v1/payment_intents")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	t.Log(response.Status)
}
