package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
)

var (
	cardLink   = regexp.MustCompile(`"url": *"([^"]+)"`)
	saveButton = regexp.MustCompile(`<button name="(\w+)" value="(\w+)">Save this card</button>`)
)

// give has a customer give a card by the link of the account that the command has printed.
func (k *killedStore) give(code int, said string) {
	k.t.Helper()
	if code != exitDone {
		return
	}
	link := cardLink.FindStringSubmatch(said)
	if link == nil {
		k.t.Fatalf("no link: %s", said)
	}
	stay := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, err := stay.Get(link[1])
	if err != nil {
		k.moves["a page was lost"]++
		return
	}
	text, err := io.ReadAll(page.Body)
	page.Body.Close()
	button := saveButton.FindStringSubmatch(string(text))
	if err != nil || button == nil {
		k.t.Fatalf("%s: %v\n%s", link[1], err, text)
	}
	card := []string{"pm_card_visa", "pm_card_mastercard", "pm_card_chargeCustomerFail"}[k.random.IntN(3)]
	done, err := stay.PostForm(link[1], url.Values{button[1]: {button[2]}, "card": {card}})
	if err != nil {
		k.moves["a page was lost"]++
		return
	}
	done.Body.Close()
	k.moves[fmt.Sprintf("card given: %d", done.StatusCode)]++
}

// bank has a customer dispute a charge, decides a dispute, or has it appealed.
func (k *killedStore) bank() {
	if len(k.disputes) > 0 && k.random.IntN(3) > 0 {
		id := k.disputes[k.random.IntN(len(k.disputes))]
		switch k.random.IntN(3) {
		case 0:
			if k.fake.AppealDispute(id) == nil { // it is lost
				k.moves["appeal"]++
			}
		default:
			verdict := []string{"won", "lost", "lost"}[k.random.IntN(3)]
			if k.fake.CloseDispute(id, verdict) == nil { // it is open
				k.moves["dispute "+verdict]++
			}
		}
		return
	}
	for e := range k.fake.Ledger() {
		if e.Type == "charge" && k.random.IntN(10) == 0 {
			if id, err := k.fake.Dispute(e.Intent, ""); err == nil { // it has none
				k.disputes = append(k.disputes, id)
			}
			return
		}
	}
}
