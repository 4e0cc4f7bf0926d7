// Takes webhooks with stripe-sync-engine: verifies the signature, stores the object, and replies.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { readFileSync } from 'node:fs'

// As an ES module, the library does not find its migrations, and reports the error to the logger alone.
const { StripeSync, runMigrations } = createRequire(import.meta.url)('@supabase/stripe-sync-engine')
const logger = { info() {}, warn() {}, debug() {}, error(e) { console.error(e); process.exit(1) } }
const version = name => JSON.parse(readFileSync(join(import.meta.dirname, 'node_modules', name, 'package.json'))).version
const databaseUrl = `postgresql://postgres@/postgres?host=${encodeURIComponent(process.env.SYNC_SOCKET)}`
await runMigrations({ databaseUrl, schema: 'stripe', logger })
const sync = new StripeSync({
  poolConfig: { connectionString: databaseUrl, max: 32, keepAlive: true }, schema: 'stripe',
  stripeSecretKey: 'sk_test_bench', stripeWebhookSecret: process.env.SYNC_SECRET, backfillRelatedEntities: false,
})
const answer = Buffer.from('{"received":true}')
const server = createServer((request, response) => {
  const parts = []
  request.on('data', part => parts.push(part))
  request.on('end', async () => {
    try {
      await sync.processWebhook(Buffer.concat(parts), request.headers['stripe-signature'])
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': answer.length })
      response.end(answer)
    } catch (e) {
      const text = Buffer.from(String(e))
      response.writeHead(500, { 'Content-Length': text.length })
      response.end(text)
    }
  })
})
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({
  address: `127.0.0.1:${server.address().port}`,
  sync: `stripe-sync-engine ${version('@supabase/stripe-sync-engine')}, stripe ${version('stripe')}, Node ${process.version}`,
})))
