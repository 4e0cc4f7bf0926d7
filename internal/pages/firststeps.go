package pages

import "time"

// firstSteps returns what the steps to the first charge show, or nothing once there was one. An installation that only
// follows payments at Stripe has no steps either. Besides today's objects, it reads at most 20 rows of each list.
func firstSteps(v *visit, overview, status object) (object, error) {
	run, _ := overview["run"].(object)
	charged := minor(run["paid"]) > 0
	for _, day := range objectsOf(overview["days"]) {
		charged = charged || minor(day["collected"])+minor(day["outside"]) > 0
	}
	if charged {
		return nil, nil
	}
	data, err := v.load(map[string]string{"settings": "/v1/settings", "accounts": "/v1/accounts?limit=1", "subscriptions": "/v1/subscriptions?limit=20"})
	if err != nil {
		return nil, err
	}
	account, sub := object{}, object{}
	first := object{"settings": data["settings"], "run": run, "tried": minor(run["due"]) > 0, "processor": v.o.Stripe}
	for _, s := range dataOf(data, "subscriptions") {
		if minor(s["paid_periods"]) > 0 {
			return nil, nil
		}
		if len(sub) == 0 {
			sub = s
		}
	}
	for _, a := range dataOf(data, "accounts") {
		account = a
	}
	for _, check := range objectsOf(status["checks"]) {
		if check["check"] == "accounts" && len(account) == 0 { // merchants at Stripe, and no account that Duesday charges
			return nil, nil
		}
		if check["check"] == "stripe" && check["state"] == "wrong" {
			first["refused"] = check
		}
	}
	name, _ := account["time_zone"].(string)
	zone, err := time.LoadLocation(name) // "" is UTC
	if err != nil {                      // a zone that this machine does not know must not hide today's page
		zone = time.UTC
	}
	first["account"], first["subscription"], first["payment_day"] = account, sub, v.o.Now().In(zone).Day()
	return first, nil
}
