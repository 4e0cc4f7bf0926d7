#!/usr/bin/env python3
"""The backend of a gym whose members pay through Duesday. It needs only Python 3.9.

    gym.py join MEMBER EMAIL DAY  create the account and its membership, print a link for the card
    gym.py card MEMBER            print another link for a card
    gym.py charge                 run today's payments, as duesday serve does every day
    gym.py paid MEMBER            show whether the member has paid
    gym.py upgrade MEMBER ORDER   change the plan from the next period on
    gym.py leave MEMBER ORDER     cancel when the period ends
    gym.py listen PORT            receive Duesday's deliveries

DAY is the day on which the member joined, and ORDER is the number of the member's request. Store
both in your system before you call. You can repeat a command safely: it takes effect once.
"""
import base64, contextlib, hashlib, hmac, http.client, http.server, json, os, sqlite3, sys, time, uuid
import urllib.error, urllib.parse, urllib.request

API = os.environ.get("GYM_API", "http://127.0.0.1:8081")
KEY = os.environ.get("GYM_KEY", "")          # an API key with the scope charge
SECRET = os.environ.get("GYM_SECRET", "")    # the endpoint's signing secret: whsec_…
ATTEMPTS, LONGEST_WAIT = 6, 10               # attempts, and seconds between them


class Problem(Exception):
    """An error response (RFC 9457). Decide by code. The text is for people."""

    def __init__(self, answer):
        try:
            body = json.load(answer)
        except (OSError, http.client.HTTPException, ValueError):
            body = {}                        # sent by a proxy, or incomplete
        self.status, self.code = answer.code, body.get("code", "")
        lines = [f"{self.status} {self.code}: {body.get('detail')}", f"request {body.get('request_id')}"]
        lines += [f"{e.get('pointer') or e.get('parameter')}: {e['detail']}" for e in body.get("errors", [])]
        super().__init__("\n  ".join(lines))


def request(method, path, body=None, key=None, match=None):
    """Send a request, and return the response and its ETag. If the response is lost, the request may
    have taken effect. Repeating it with the same Idempotency-Key is safe: the server repeats nothing
    and returns the current object."""
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    if match:
        headers["If-Match"] = match
    data = None if body is None else json.dumps(body).encode()
    wait = 0
    for attempt in range(ATTEMPTS):
        time.sleep(wait)
        wait = min(2 ** attempt / 4, LONGEST_WAIT)
        try:
            r = urllib.request.Request(API + "/v1/" + path, data, headers, method=method)
            with urllib.request.urlopen(r, timeout=30) as answer:
                return json.load(answer), answer.headers.get("ETag")
        except urllib.error.HTTPError as e:
            failed, wait = Problem(e), min(float(e.headers.get("Retry-After", wait)), LONGEST_WAIT)
            if e.code < 500 and "Retry-After" not in e.headers:
                break                        # the same request would fail again
        except (OSError, http.client.HTTPException, ValueError) as e:   # no connection, cut off, or timed out
            failed = e
    raise failed


def get(path, **parameters):
    return request("GET", path + ("?" + urllib.parse.urlencode(parameters) if parameters else ""))


def pages(path, **parameters):
    """Yield all rows of a list."""
    while True:
        page, _ = get(path, **parameters)
        yield from page["data"]
        if not page["has_more"]:
            return
        parameters["cursor"] = page["next_cursor"]


def of(member):
    return "accounts/" + urllib.parse.quote(member, safe="")


def join(member, email, day):
    """Sign a member up. A member joins only once, so the keys contain the member's ID. A repeated
    request must be identical, so it contains the stored day and not today's."""
    request("POST", "accounts", {"id": member, "email": email}, key=f"join/{member}/account")
    request("POST", of(member) + "/subscriptions", {
        "id": "gym", "sku": "GYM", "amount": 3900, "currency": "GBP",   # £39.00: minor units
        "payment_day": int(day[-2:]), "next_payment_date": day}, key=f"join/{member}/subscription")
    card(member)


def card(member):
    """Print a link where the member enters a card. A new key creates a new link."""
    link, _ = request("POST", of(member) + "/card_links", {}, key=str(uuid.uuid4()))
    print(link["url"])


def charge():
    """Start a payment run and wait until it has ended. The run also picks up new cards."""
    run, _ = request("POST", "runs", {"kind": "payments"}, key=str(uuid.uuid4()))
    while run["state"] == "running":
        time.sleep(0.2)
        run, _ = get("runs/" + urllib.parse.quote(run["id"], safe=""))
    print(f"{run['state']}: {run.get('paid', 0)} paid")


def paid(member):
    """Show whether the member has paid, with all receipts."""
    sub, _ = get(of(member) + "/subscriptions/gym")
    last = max(sub["period"] - 1, 0)         # the newest period that has begun
    period, _ = get(of(member) + f"/subscriptions/gym/periods/{last}")
    print(f"{sub['status']}, period {last} is {period['state']}, next payment {sub.get('due_date', 'never')}")
    for r in pages("receipts", account=member):
        print(f"receipt {r.get('number', r['id'])}: {r['amount']} {r['currency']} for {r['due_date']}")


def upgrade(member, order):
    """Change the plan. If someone else has changed the subscription, read it again first."""
    sub, version = get(of(member) + "/subscriptions/gym")
    try:
        sub, _ = request("POST", of(member) + "/subscriptions/gym/plan", {
            "sku": "GYM-PLUS", "amount": 4900, "currency": "GBP"}, key=f"order/{order}", match=version)
    except Problem as p:
        if p.status != 412:
            raise
        return upgrade(member, order)        # a rejected request does not use up its key
    print(f"{sub['pending']['sku']} from {sub['pending']['from']}" if "pending" in sub else sub["sku"])


def leave(member, order):
    sub, _ = request("POST", of(member) + "/subscriptions/gym/cancel", {"at_period_end": True}, key=f"order/{order}")
    print(sub["status"] + (", ends on " + sub["due_date"] if sub.get("cancel_at_period_end") else ""))


def verify(secret, headers, body):
    """Raise ValueError unless the delivery was signed with the secret in the last five minutes."""
    identity, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        raise ValueError("the timestamp is not current")
    mac = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), f"{identity}.{at}.".encode() + body, hashlib.sha256)
    ours = b"v1," + base64.b64encode(mac.digest())
    # For a day after a rotation, there is a signature with each secret.
    if not any(hmac.compare_digest(ours, s.encode()) for s in headers.get("webhook-signature", "").split()):
        raise ValueError("no signature is valid")
    return identity


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 20_000))
        try:
            identity = verify(SECRET, self.headers, body)
        except ValueError as e:
            return self.send_error(400, str(e))
        handle(identity, json.loads(body))   # if it raises, Duesday gets no response and sends it again
        self.send_response(204)
        self.end_headers()


def handle(identity, message):
    """Store a delivery's effect together with its ID, because the delivery can arrive again. Deliveries
    arrive in any order and contain only IDs, so read the state from the API."""
    with contextlib.closing(database()) as db, db:
        if not db.execute("INSERT OR IGNORE INTO delivery VALUES (?)", (identity,)).rowcount:
            return
        about = message["data"]
        if about.get("subscription") == "gym":
            sub, _ = get(of(about["account"]) + "/subscriptions/gym")
            db.execute("REPLACE INTO member VALUES (?, ?, ?)", (sub["account"], sub["status"], sub.get("due_date")))
    print(message["type"], about.get("account", ""), flush=True)


def database():
    db = sqlite3.connect("gym.db", timeout=10)
    db.execute("CREATE TABLE IF NOT EXISTS delivery (id TEXT PRIMARY KEY)")
    db.execute("CREATE TABLE IF NOT EXISTS member (id TEXT PRIMARY KEY, status TEXT, paid_until TEXT)")
    return db


def listen(port):
    if not SECRET:
        sys.exit("set GYM_SECRET to the secret that duesday endpoint create prints")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}/duesday", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    commands = {f.__name__: f for f in (join, card, charge, paid, upgrade, leave, listen)}
    command, arguments = commands.get("".join(sys.argv[1:2])), sys.argv[2:]
    if command is None or len(arguments) != command.__code__.co_argcount:
        sys.exit(__doc__)
    try:
        command(*arguments)
    except Problem as problem:
        sys.exit(str(problem))
