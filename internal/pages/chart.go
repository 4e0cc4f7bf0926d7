package pages

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// A chart shows amounts of one currency by date, as stacked bars. The page has the same numbers in a table.
type chart struct {
	Currency string
	Kinds    []string // of the bars, from the bottom of a bar to its top
	Columns  []string // of the table: the kinds, and those that have no bars
	Rows     []object // by date
	Bars     []bar
	First    string      // date at the left of all charts of a list
	Last     string      // and at the right
	Highest  json.Number // the sum of the highest bar
}

// A bar is a part of a chart. Sizes are in units of the chart's view box.
type bar struct {
	X, Y, Width, Height int
	Kind, Date          string
	Amount              json.Number
}

// The view box of a chart.
const (
	chartWidth  = 720
	chartHeight = 120
)

// charts returns a chart for each currency in the rows, which have a date, a currency and an amount of each kind.
// All of them show the days from first to last, and those of rows before and after.
func charts(list any, first, last time.Time, kinds ...string) (all []*chart) {
	rows, _ := list.([]any)
	from, to := first.Format(time.DateOnly), last.Format(time.DateOnly)
	for _, x := range rows {
		o, _ := x.(object)
		date, _ := o["date"].(string)
		from, to = min(from, date), max(to, date)
		code, _ := o["currency"].(string)
		at := slices.IndexFunc(all, func(c *chart) bool { return c.Currency == code })
		if at < 0 {
			at, all = len(all), append(all, &chart{Currency: code, Kinds: kinds, Columns: kinds})
		}
		all[at].Rows = append(all[at].Rows, o)
	}
	for _, c := range all {
		c.First, c.Last = from, to
		c.draw()
	}
	return all
}

// draw sets the bars. The highest one has the height of the chart, and a bar is as far to the right as its date
// is after the first one.
func (c *chart) draw() {
	highest, first := int64(1), dayOf(c.First)
	for _, o := range c.Rows {
		sum := int64(0)
		for _, kind := range c.Kinds {
			sum += part(o, kind)
		}
		highest = max(highest, sum)
	}
	c.Highest = json.Number(strconv.FormatInt(highest, 10))
	days := max(1, dayOf(c.Last)-first+1)
	for _, o := range c.Rows {
		date, _ := o["date"].(string)
		top := chartHeight
		for _, kind := range c.Kinds {
			n := part(o, kind)
			if n == 0 {
				continue
			}
			height := max(1, int(n*chartHeight/highest))
			top -= height
			amount, _ := o[kind].(json.Number)
			if kind == "collected" {
				amount = json.Number(strconv.FormatInt(minor(o[kind])+minor(o["outside"]), 10))
			}
			c.Bars = append(c.Bars, bar{X: (dayOf(date) - first) * chartWidth / days, Y: max(0, top), Width: max(1, chartWidth/days-1), Height: height, Kind: kind, Date: date,
				Amount: amount})
		}
	}
}

// dayOf returns the number of the date.
func dayOf(date string) int {
	t, _ := time.Parse(time.DateOnly, date) // of the API
	return int(t.Unix() / int64((24 * time.Hour).Seconds()))
}

// part returns the height of a kind. What was recovered is a part of what was collected and paid outside, and the bar
// above it, of the kind collected, has the rest of both.
func part(o object, kind string) int64 {
	if kind == "collected" {
		return max(0, minor(o[kind])+minor(o["outside"])-minor(o["recovered"]))
	}
	return minor(o[kind])
}

// minor returns an amount in minor units, or 0.
func minor(x any) int64 {
	n, _ := x.(json.Number)
	units, err := n.Int64()
	if err != nil || units < 0 || units > 1<<50 { // no day has more
		return 0
	}
	return units
}

// today adds the charts of the overview, and the steps to the first charge.
func today(v *visit, data object) (err error) {
	overview, _ := data["overview"].(object)
	day := func(x any) time.Time { // of a date or time of the API
		text, _ := x.(string)
		t, _ := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
		return t
	}
	date := day(overview["date"])
	past := charts(overview["days"], date.AddDate(0, 0, -89), date, "recovered", "collected", "declined")
	for _, c := range past {
		c.Columns = []string{"recovered", "collected", "outside", "declined", "failed"}
	}
	data["past"] = past
	if outlook, ok := overview["outlook"].(object); ok {
		made := day(outlook["as_of"])
		data["expected"] = charts(outlook["expected"], made, made.AddDate(0, 0, 29), "amount")
	}
	status, _ := data["status"].(object)
	data["steps"], err = firstSteps(v, overview, status)
	return err
}
