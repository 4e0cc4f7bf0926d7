// Signs a customer up and pays one period, with the client that openapi-typescript generates.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [url = "", key = ""] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

function must<T>(what: string, r: { data?: T; error?: { code: string; detail?: string }; response: Response }): T {
  if (r.data === undefined) throw new Error(`${what}: ${r.response.status} ${r.error?.code}: ${r.error?.detail}`);
  return r.data;
}

const header = () => ({ "Idempotency-Key": crypto.randomUUID() });
const path = { account: "typescript", subscription: "gym" };
must("account", await api.POST("/v1/accounts", { params: { header: header() }, body: { id: path.account, email: "ts@example.com" } }));
must("method", await api.POST("/v1/accounts/{account}/payment_methods", { params: { path, header: header() }, body: { payment_method: "pm_card_visa" } }));
const day = Number(process.argv[4]);
const made = must("subscription", await api.POST("/v1/accounts/{account}/subscriptions", {
  params: { path, header: header() }, body: { id: path.subscription, sku: "GYM", amount: 1299, currency: "EUR", payment_day: day } }));
const charged = must("charge", await api.POST("/v1/accounts/{account}/subscriptions/{subscription}/periods/{period}/charge", {
  params: { path: { ...path, period: made.period }, header: header() }, body: {} }));
const receipts = must("receipts", await api.GET("/v1/receipts", { params: { query: { account: path.account } } }));
console.log(JSON.stringify({ outcome: charged.results[0]?.outcome, receipts: receipts.data.map((r) => [r.amount, r.currency]) }));
