package browsertest

import "strings"

import "fmt"

// Overflow returns the widest element that makes the page scroll sideways, or "".
func (b *Browser) Overflow() string {
	b.t.Helper()
	return fmt.Sprint(b.Run(`const root = document.documentElement, wide = root.clientWidth;
if (Math.max(root.scrollWidth, document.body.scrollWidth) <= wide) return "";
let worst = root, most = 0;
for (const e of document.querySelectorAll("body *")) {
  const right = e.getBoundingClientRect().right;
  if (right > most && !e.closest(".scroll *")) { most = right; worst = e; }
}
return root.scrollWidth + " of " + wide + " pixels: " + worst.outerHTML.slice(0, 200);`))
}

// Unreached returns the links, buttons and fields that the Tab key does not reach, and those that do not show that
// they have the focus.
func (b *Browser) Unreached() (all []string) {
	b.t.Helper()
	n := b.Run(`window.reached = new Set(), window.unseen = new Set();
document.addEventListener("focusin", e => {
  reached.add(e.target);
  const s = getComputedStyle(e.target);
  if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) === 0) unseen.add(e.target);
});
window.wanted = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
  .filter(e => !e.disabled && e.checkVisibility());
document.activeElement?.blur();
return wanted.length + 4 * wanted.filter(e => e.type === "date").length; // a date has parts`).(float64)
	var keys strings.Builder
	for range int(n) + 2 {
		keys.WriteString(Tab)
	}
	b.Press(keys.String())
	for _, line := range b.Run(`const text = e => e.outerHTML.slice(0, 150);
return [...wanted.filter(e => !reached.has(e)).map(e => "Tab does not reach " + text(e)), ...[...unseen].map(e => "no focus is seen on " + text(e))];`).([]any) {
		all = append(all, line.(string))
	}
	return all
}
