// audit.mjs FOLDER TODAY [DAYS] audits a store from outside. It shares no code with Duesday: the
// calendar, the amounts and the rules are written down here a second time. FOLDER contains
//
//   orders.jsonl         what people asked for: subscriptions, pauses, cancellations, manual payments
//   ledger.jsonl         what the fake of Stripe charged
//   subscriptions.jsonl  duesday export subscriptions --all
//   receipts.jsonl       duesday export receipts
//   periods.jsonl        duesday export periods
//   refunds.jsonl        duesday export refunds
//
// TODAY is the last day on which a period may be due. Without DAYS, a charge may be under way: its
// period is then the next one, or one that did not end paid. With DAYS, no charge is under way, and an
// active subscription must not have a period that has been open for more days. The script prints a line for each problem, then
// the counts, and exits 1 if there is a problem.
import { readFileSync } from 'node:fs'

const [folder, today, settled] = process.argv.slice(2)
const read = name => readFileSync(`${folder}/${name}.jsonl`, 'utf8').split('\n').filter(Boolean).map(line => JSON.parse(line))
const [orders, ledger, subscriptions, receipts, periods, refunds] =
  ['orders', 'ledger', 'subscriptions', 'receipts', 'periods', 'refunds'].map(read)

let problems = 0
const problem = text => { problems++; console.log('PROBLEM', text) }
const counts = { due: 0, paid: 0, failed: 0, void: 0, skipped: 0, parked: 0, open: 0, past_due: 0, paused: 0, under_way: 0, disputes: 0 }

const nameOf = x => `${x.account}/${x.subscription}`
const grouped = (list, key) => Map.groupBy ? Map.groupBy(list, key) : list.reduce((m, x) =>
  m.set(key(x), [...(m.get(key(x)) ?? []), x]), new Map())

// minor returns a decimal amount in the currency's smallest unit.
function minor(amount, currency) {
  const digits = { JPY: 0, KRW: 0, KWD: 3 }[currency] ?? 2
  const [whole, rest = ''] = amount.split('.')
  return Number(whole + rest.padEnd(digits, '0'))
}

const iso = (year, month, day) => new Date(Date.UTC(year, month, day)).toISOString().slice(0, 10)
const daysBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 86400000

// due returns the day of period n: so many days or weeks after the first one, or the same day of so many
// months later, which is the last day of a month that is too short.
function due(order, n) {
  const [year, month, day] = order.first.split('-').map(Number)
  if (order.unit === 'week') return iso(year, month - 1, day + 7 * order.every * n)
  if (order.unit === 'day') return iso(year, month - 1, day + order.every * n)
  const at = month - 1 + order.every * n
  const last = new Date(Date.UTC(year, at + 1, 0)).getUTCDate()
  return iso(year, at, Math.min(order.day, last))
}

const ordered = new Map(orders.filter(o => o.order === 'subscribe').map(o => [nameOf(o), o]))
const stored = new Map(subscriptions.map(s => [nameOf(s), s]))
const canceled = grouped(orders.filter(o => o.order === 'cancel'), nameOf)
const paused = grouped(orders.filter(o => o.order === 'pause'), nameOf)
const manual = grouped(orders.filter(o => o.order === 'receipt'), nameOf)

const charges = ledger.filter(e => e.type === 'charge').map(e => ({ intent: e.payment_intent, amount: e.amount,
  currency: e.currency.toUpperCase(), day: e.at.slice(0, 10), period: Number(e.metadata.duesday_period),
  name: `${e.metadata.duesday_account}/${e.metadata.duesday_subscription}` }))
const periodKey = x => `${x.name ?? nameOf(x)}/${x.period}`
const chargesOf = grouped(charges, periodKey)
const receiptsOf = grouped(receipts, periodKey)
const endsOf = grouped(periods, periodKey)
const known = grouped(receipts, r => r.charge)

for (const [key, list] of chargesOf) if (list.length > 1) problem(`${key} was charged ${list.length} times`)
for (const c of charges) {
  const order = ordered.get(c.name)
  if (!order) { problem(`${periodKey(c)} was charged, and nobody ordered ${c.name}`); continue }
  const receipt = known.get(c.intent)?.[0]
  const sub = stored.get(c.name)
  const underWay = !settled && !receipt && (endsOf.has(periodKey(c)) || sub?.next_payment_date === due(order, c.period))
  if (underWay) counts.under_way++
  else if (!receipt || receipt.kind !== 'charge' || periodKey(receipt) !== periodKey(c))
    problem(`${periodKey(c)} was charged by ${c.intent}, which no receipt of the period names`)
  else if (minor(receipt.amount, receipt.currency) !== c.amount || receipt.currency !== c.currency)
    problem(`${periodKey(c)} was charged ${c.amount} ${c.currency}, its receipt says ${receipt.amount} ${receipt.currency}`)
  if (c.amount !== minor(order.amount, order.currency) || c.currency !== order.currency)
    problem(`${periodKey(c)} was charged ${c.amount} ${c.currency}, ordered were ${order.amount} ${order.currency}`)
  if (c.day < due(order, c.period)) problem(`${periodKey(c)} was charged on ${c.day}, it is due on ${due(order, c.period)}`)
}

// A lost dispute takes the money; so does one that is appealed, until the appeal is won.
const verdict = { won: 'failed', lost: 'succeeded', appeal_needs_response: 'succeeded', appeal_under_review: 'succeeded' }
for (const e of settled ? ledger.filter(e => e.type === 'dispute') : []) {
  const stored = refunds.find(r => [r.id, r.refund].includes(e.id)), want = verdict[e.status] ?? 'pending'
  if (!stored) problem(`dispute ${e.id} of ${e.payment_intent} is not in the store`)
  else if (minor(stored.amount, stored.currency) !== e.amount || stored.state !== want)
    problem(`dispute ${e.id} is ${e.status} of ${e.amount}, the store has ${stored.state} of ${stored.amount} ${stored.currency}`)
  else counts.disputes++
}

for (const [key, list] of receiptsOf) {
  const paid = list.filter(r => r.kind !== 'overpayment')
  if (paid.length > 1) problem(`${key} has ${paid.length} receipts`)
  for (const r of list) {
    const order = ordered.get(nameOf(r))
    if (!order) { problem(`${key} has a receipt, and nobody ordered it`); continue }
    if (r.due_date !== due(order, r.period)) problem(`${key} has a receipt for ${r.due_date}, it is due on ${due(order, r.period)}`)
    if (r.kind === 'charge') {
      if (!charges.some(c => c.intent === r.charge)) problem(`${key} has a receipt of ${r.charge}, which took no money`)
    } else if (!manual.get(nameOf(r))?.some(o => o.amount === r.amount && o.currency === r.currency))
      problem(`${key} has a manual receipt of ${r.amount} ${r.currency}, which nobody recorded`)
  }
}

for (const [key, list] of endsOf) {
  if (list.length > 1) problem(`${key} ended ${list.length} times`)
  const order = ordered.get(nameOf(list[0]))
  if (!order) problem(`${key} ended, and nobody ordered it`)
  else if (list[0].due_date !== due(order, list[0].period))
    problem(`${key} ended as due on ${list[0].due_date}, it is due on ${due(order, list[0].period)}`)
  else if (list[0].amount !== order.amount || list[0].currency !== order.currency)
    problem(`${key} ended with ${list[0].amount} ${list[0].currency}, ordered were ${order.amount} ${order.currency}`)
}

for (const name of stored.keys()) if (!ordered.has(name)) problem(`${name} is in the store, and nobody ordered it`)

for (const [name, order] of ordered) {
  const sub = stored.get(name)
  if (!sub) { problem(`${name} was ordered, and is not in the store`); continue }
  if (minor(sub.amount, sub.currency) !== minor(order.amount, order.currency) || sub.currency !== order.currency)
    problem(`${name} has the amount ${sub.amount} ${sub.currency}, ordered were ${order.amount} ${order.currency}`)
  const cancels = (canceled.get(name) ?? []).map(o => o.at).sort()
  if (sub.status === 'paused' && !paused.has(name)) problem(`${name} is paused, and nobody asked for it`)
  if (sub.status === 'canceled' && cancels.length === 0) problem(`${name} is canceled, and nobody asked for it`)
  if (cancels.length > 0 && settled && sub.status !== 'canceled' && orders.some(o => o.order === 'cancel' && !o.end && nameOf(o) === name))
    problem(`${name} was to be canceled at once on ${cancels[0]}, and is ${sub.status}`)
  const end = cancels.length > 0 && cancels[0] < today ? cancels[0] : today
  const state = []
  for (let n = 0; due(order, n) <= today; n++) {
    const key = `${name}/${n}`, ended = endsOf.get(key)?.[0]?.ending
    const paid = settled && chargesOf.has(key) || (receiptsOf.get(key) ?? []).some(r => r.kind !== 'overpayment')
    if (paid && ended && ended !== 'parked') problem(`${key} was paid, and ended ${ended} too`)
    state.push(paid ? 'paid' : ended ?? '')
    if (due(order, n) > end && chargesOf.has(key)) problem(`${key} was charged, though ${name} was canceled on ${end}`)
  }
  if (sub.status === 'past_due' && !state.includes('failed')) problem(`${name} is past_due, and no period of it has failed`)
  const last = state.findLastIndex(s => s !== '')
  state.forEach((s, n) => {
    const day = due(order, n)
    if (day > end) return
    counts.due++
    if (s !== '') { counts[s]++; return }
    if (n < last) { problem(`${name}/${n}, due on ${day}, has neither a payment nor an end, and ${name}/${last} has`); return }
    if (sub.status === 'past_due' || sub.status === 'paused') { counts[sub.status]++; return }
    if (!sub.next_payment_date || sub.next_payment_date > day || sub.status === 'canceled') {
      problem(`${name}/${n}, due on ${day}, has neither a payment nor an end; ${name} is ${sub.status}, next due on ${sub.next_payment_date}`)
      return
    }
    counts.open++
    if (settled && sub.status === 'active' && daysBetween(day, today) > Number(settled))
      problem(`${name}/${n}, due on ${day}, is still open`)
  })
  if (sub.next_payment_date) {
    let n = 0
    while (due(order, n) < sub.next_payment_date) n++
    if (due(order, n) !== sub.next_payment_date) problem(`${name} is next due on ${sub.next_payment_date}, its calendar has ${due(order, n)}`)
  }
}
console.log(JSON.stringify({ problems, subscriptions: ordered.size, charges: charges.length, receipts: receipts.length, ...counts }))
process.exit(problems > 0 ? 1 : 0)
