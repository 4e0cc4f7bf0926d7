#!/usr/bin/env python3
"""Recompute the books from Duesday's exports and the processor's ledger. It needs only Python 3.9.

    recompute.py FOLDER

The folder contains the files that README.md lists. The program shares no code with Duesday. It prints
what it has compared, and each difference, and exits with 1 if there is one.
"""
import collections, csv, json, pathlib, sys
from decimal import Decimal, ROUND_HALF_UP

folder = pathlib.Path(sys.argv[1])
wrong = 0


def table(name):
    """Return the rows of a CSV file. Amounts are exact decimals."""
    with open(folder / name, newline="", encoding="utf-8") as file:
        return [{k: Decimal(v) if k in AMOUNTS and v else v for k, v in row.items()} for row in csv.DictReader(file)]


AMOUNTS = set("amount gross fee net charged collected outside refunded failed recovered outstanding tax "
              "refunded_net refunded_tax receipts refunds".split())


def compare(what, got, want):
    """Compare two sums by key, and say so."""
    global wrong
    keys = [k for k in sorted(set(got) | set(want), key=str) if got.get(k, 0) != want.get(k, 0)]
    for k in keys:
        print(f"{what} {k}: {got.get(k, 0)}, but recomputed {want.get(k, 0)}")
    wrong += len(keys)
    print(f"{what}: {len(want)} compared, {len(keys)} wrong")


def add_up(rows, key, amount):
    sums = collections.Counter()
    for row in rows:
        sums[key(row)] += amount(row)
    return sums


receipts, refunds, payouts = table("receipts.csv"), table("refunds.csv"), table("payouts.csv")
ledger, bank = ([json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
                for name in ("ledger.jsonl", "bank.jsonl"))
charged = [r for r in receipts if r["kind"] == "charge"]
done = [r for r in refunds if r["state"] == "succeeded"]     # also a lost dispute
moved = [r for r in refunds if r["state"] in ("succeeded", "pending")]
exponent = {"JPY": 0, "KRW": 0, "KWD": 3}


def decimal(minor, currency):
    return Decimal(minor).scaleb(-exponent.get(currency.upper(), 2))


def half_up(amount, currency):
    return amount.quantize(decimal(1, currency), ROUND_HALF_UP)


def intent(charge):
    return charge.rsplit("/", 1)[-1]                         # acct_…/pi_… of a connected account


# 1. The processor's ledger: each charge of Duesday has one receipt, and each receipt has a charge.
own = [e for e in ledger if e.get("metadata", {}).get("duesday_installation")]
both = lambda r: (intent(r["charge"]), r["currency"])
compare("receipts and the processor's charges", add_up(charged, both, lambda r: r["amount"]),
        add_up([e for e in own if e["type"] == "charge"], lambda e: (e["payment_intent"], e["currency"].upper()),
               lambda e: decimal(e["amount"], e["currency"])))
lost = [e for e in own if (e["type"], e["status"]) in (("refund", "succeeded"), ("dispute", "lost"))]
compare("refunds and the processor's refunds", add_up(done, lambda r: (r["refund"], r["currency"]), lambda r: r["amount"]),
        add_up(lost, lambda e: (e["id"], e["currency"].upper()), lambda e: decimal(e["amount"], e["currency"])))

# 2. The journal of each month.
month = lambda field: lambda r: (r[field][:7], r["currency"])
journal = table("journal.csv")
for column, rows, field in (("collected", charged, "processed_at"), ("refunded", done, "processed_at"),
                            ("outside", [r for r in receipts if r["kind"] in ("external", "overpayment")], "processed_at")):
    compare("journal: " + column, add_up(journal, month("month"), lambda r: r[column]),
            add_up(rows, month(field), lambda r: r["amount"]))

# 3. Numbers: one series without a gap.
numbers = sorted(r["number"] for r in receipts + refunds if r["number"])
series = collections.Counter(n.rsplit("-", 1)[0] for n in numbers)
compare("numbers", collections.Counter(numbers), collections.Counter(f"{s}-{i:06}" for s, n in series.items() for i in range(1, n + 1)))

# 4. Taxes: of each receipt from its rate, and of what refunds gave back. A country's sums are one line of the table.
group = lambda r, at: (at[:7], r["tax_country"], r["tax_rate"], r["tax_note"], r["currency"])
taxed = [r for r in receipts if r.get("tax_rate")]
for r in taxed:
    rate = Decimal(r["tax_rate"]) / 100
    r["must"] = half_up(r["net"] * rate if r["tax_mode"] == "exclusive" else r["amount"] * rate / (1 + rate), r["currency"])
compare("taxes of receipts", {r["id"]: (r["tax"], r["net"] + r["tax"]) for r in taxed}, {r["id"]: (r["must"], r["amount"]) for r in taxed})
if taxed:
    table_of = lambda column: add_up(table("taxes.csv"), lambda r: (r["month"], r["country"], r["rate"], r["note"], r["currency"]), lambda r: r[column])
    compare("taxes by month", table_of("tax"), add_up(taxed, lambda r: group(r, r["processed_at"]), lambda r: r["must"]))
    by_charge, before, given = {r["charge"]: r for r in taxed}, collections.Counter(), collections.Counter()
    for x in sorted((x for x in done if x["charge"] in by_charge), key=lambda x: (x["processed_at"], x["id"])):
        r = by_charge[x["charge"]]
        share = lambda part: half_up(r["must"] * min(part, r["amount"]) / r["amount"], r["currency"])
        given[group(r, x["processed_at"])] += share(before[x["charge"]] + x["amount"]) - share(before[x["charge"]])
        before[x["charge"]] += x["amount"]
    compare("taxes of refunds", table_of("refunded_tax"), given)

# 5. The payouts: their rows add up to what the bank booked, and they contain each receipt.
compare("payouts at the bank", add_up(payouts, lambda r: r["payout"], lambda r: r["net"]),
        add_up(bank, lambda p: p["id"], lambda p: decimal(p["amount"], p["currency"])))
inside = [r for r in payouts if r["own"] == "yes" and r["kind"] == "charge"]
compare("receipts in payouts", add_up(inside, lambda r: r["receipt"], lambda r: r["charged"]),
        add_up(charged, lambda r: r["id"], lambda r: r["amount"]))
of = {intent(r["charge"]): r["id"] for r in charged}
for kind in ("refund", "dispute"):
    compare(f"{kind}s in payouts",
            add_up([r for r in payouts if r["own"] == "yes" and r["kind"] == kind], lambda r: (r["receipt"], r["currency"]),
                   lambda r: -r["gross"]),
            add_up([r for r in moved if r["kind"] == kind], lambda r: (of[intent(r["charge"])], r["currency"]), lambda r: r["amount"]))
sys.exit(wrong > 0)
