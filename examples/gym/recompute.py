#!/usr/bin/env python3
"""Recompute the books from Duesday's exports and the processor's ledger. It needs only Python 3.9.

    recompute.py FOLDER

The folder contains the files that README.md lists. The program shares no code with Duesday. It prints
what it has compared, and each difference, and exits with 1 if there is one.
"""
import collections, csv, json, pathlib, sys
from decimal import Decimal, ROUND_HALF_UP

folder, wrong = pathlib.Path(sys.argv[1]), 0
AMOUNTS = set("amount gross net charged collected outside refunded tax refunded_net refunded_tax".split())
DIGITS, CARD = {"JPY": 0, "KRW": 0, "KWD": 3}, Decimal("0.01")     # decimals of a currency, if not two; a card's smallest step


def table(name):
    """Return the rows of a CSV file. Amounts are exact decimals, and an empty one is 0."""
    with open(folder / name, newline="", encoding="utf-8") as file:
        return [{k: Decimal(v or 0) if k in AMOUNTS else v for k, v in row.items()} for row in csv.DictReader(file)]


def objects(name):
    """Return the processor's objects, with currencies and decimals as in the tables."""
    rows = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    return [{**e, "currency": e["currency"].upper(), "amount": e["amount"] * unit(e["currency"].upper())} for e in rows]


def unit(currency):
    return Decimal(1).scaleb(-DIGITS.get(currency, 2))


def add_up(rows, columns, amount="amount"):
    """Return the sums of the amounts by the cells in the columns."""
    sums = collections.Counter()
    for row in rows:
        sums[", ".join(row[c] for c in columns.split())] += row[amount]
    return sums


def compare(what, got, want):
    """Print each difference between two sums by key, and how many keys there are."""
    global wrong
    keys = [k for k in sorted(set(got) | set(want)) if got.get(k, 0) != want.get(k, 0)]
    for k in keys:
        print(f"{what} {k}: {got.get(k, 0)}, but recomputed {want.get(k, 0)}")
    wrong += len(keys)
    print(f"{what}: {len(want)} compared, {len(keys)} wrong")


receipts, refunds, payouts, journal, taxes = (table(name + ".csv") for name in "receipts refunds payouts journal taxes".split())
for r in receipts + refunds:
    r["month"], r["intent"] = r["processed_at"][:7], r["charge"].rsplit("/", 1)[-1]      # acct_…/pi_… of a connected account
having = lambda rows, column, *cells: [r for r in rows if r[column] in cells]
charged, outside = having(receipts, "kind", "charge"), having(receipts, "kind", "external", "overpayment")
done = having(refunds, "state", "succeeded")                                             # also lost disputes
by_intent = {r["intent"]: r for r in receipts}

# 1. The processor's ledger: each charge of Duesday has one receipt, and each receipt has a charge.
own = [e for e in objects("ledger.jsonl") if e.get("metadata", {}).get("duesday_installation")]
lost = [e for e in own if (e["type"], e["status"]) in (("refund", "succeeded"), ("dispute", "lost"))]
compare("receipts and the processor's charges", add_up(charged, "intent currency"), add_up(having(own, "type", "charge"), "payment_intent currency"))
compare("refunds and the processor's refunds", add_up(done, "refund currency"), add_up(lost, "id currency"))

# 2. The journal of each month.
for column, rows in ("collected", charged), ("refunded", done), ("outside", outside):
    compare("journal: " + column, add_up(journal, "month currency", column), add_up(rows, "month currency"))

# 3. Numbers: one series without a gap.
numbers = [r["number"] for r in receipts + refunds if r["number"]]
series = collections.Counter(n.rsplit("-", 1)[0] for n in numbers)
compare("numbers", collections.Counter(numbers), {f"{s}-{i:06}": 1 for s, n in series.items() for i in range(1, n + 1)})

# 4. Taxes: of each receipt from its rate, and of each refund in proportion. A receipt's refunds are rounded together.
taxed, back, before, line = [r for r in receipts if r["tax_rate"]], [], collections.Counter(), "month tax_country tax_rate tax_note currency"
half_up = lambda amount, r, least=0: amount.quantize(max(unit(r["currency"]), least), ROUND_HALF_UP)
for r in taxed:
    rate = Decimal(r["tax_rate"]) / 100
    r["must"] = half_up(r["net"] * rate if r["tax_mode"] == "exclusive" else r["amount"] * rate / (1 + rate), r, CARD)
compare("taxes of receipts", add_up(taxed, "id", "tax"), add_up(taxed, "id", "must"))
compare("net amounts of receipts", add_up(taxed, "id", "net"), add_up(taxed, "id") - add_up(taxed, "id", "must"))
for x in sorted((x for x in done if "must" in by_intent.get(x["intent"], {})), key=lambda x: (x["processed_at"], x["id"])):
    r = by_intent[x["intent"]]
    share = lambda part: half_up(r["must"] * min(part, r["amount"]) / r["amount"], r)
    back.append({**r, **x, "must": share(before[x["intent"]] + x["amount"]) - share(before[x["intent"]])})
    before[x["intent"]] += x["amount"]
for what, columns, rows in ("by month", "gross tax net", taxed), ("of refunds", "refunded refunded_tax refunded_net", back):
    gross, tax = add_up(rows, line), add_up(rows, line, "must")
    for column, want in zip(columns.split(), (gross, tax, gross - tax)):
        compare(f"taxes {what}: {column}", add_up(taxes, "month country rate note currency", column), want)

# 5. The payouts: their rows add up to what the bank booked, and they contain each receipt.
compare("payouts at the bank", add_up(payouts, "payout", "net"), add_up(objects("bank.jsonl"), "id"))
inside = having(payouts, "own", "yes")
compare("receipts in payouts", add_up(having(inside, "kind", "charge"), "receipt", "charged"), add_up(charged, "id"))
for kind in "refund", "dispute":
    moved = [{**x, "receipt": by_intent[x["intent"]]["id"], "gross": -x["amount"]} for x in having(refunds, "state", "succeeded", "pending")]
    compare(f"{kind}s in payouts", add_up(having(inside, "kind", kind), "receipt currency", "gross"),
            add_up(having(moved, "kind", kind), "receipt currency", "gross"))
sys.exit(wrong > 0)
