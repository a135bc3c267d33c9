import { expect, onTestFinished, test } from 'vitest'
import { createDurableStreamsHandler } from '../../adapters/durable-streams/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, type Operation, open } from '../../src/index.ts'
import { OPERATIONS } from '../../src/model/access.ts'
import { testStorage } from '../support/index.ts'

const BASIN = 'test-basin'
const PROTOCOLS = ['wire', 'durable'] as const
type Protocol = (typeof PROTOCOLS)[number]

interface Row {
  readonly protocol: Protocol
  readonly method: string
  /** The path of a stream. */
  readonly path: (stream: string) => string
  /** The sets of operations of which a token needs one, each of them alone. */
  readonly needs: readonly (readonly Operation[])[]
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const TEXT = { 'content-type': 'text/plain' }
const json = (body: string) => ({ headers: { 'content-type': 'application/json' }, body })
const EVENTS = { accept: 'text/event-stream' }
const RECORD = '{"records":[{"body":"b"}]}'

const wire =
  (end = '') =>
  (stream: string) =>
    `/v1/streams/${encodeURIComponent(stream)}${end}`
const durable =
  (query = '') =>
  (stream: string) =>
    `/v1/stream/${stream}${query}`

/** Every method of a stream, by both protocols. */
const ROWS: readonly Row[] = [
  { protocol: 'wire', method: 'GET', path: wire('/records?seq_num=0'), needs: [['read']] },
  { protocol: 'wire', method: 'GET', path: wire('/records?seq_num=0'), headers: EVENTS, needs: [['read']] },
  { protocol: 'wire', method: 'HEAD', path: wire('/records?seq_num=0'), needs: [['read']] },
  { protocol: 'wire', method: 'POST', path: wire('/records'), ...json(RECORD), needs: [['append']] },
  { protocol: 'wire', method: 'GET', path: wire('/records/tail'), needs: [['check-tail']] },
  { protocol: 'wire', method: 'GET', path: wire(), needs: [['get-stream-config']] },
  { protocol: 'wire', method: 'PUT', path: wire('-new'), ...json('{}'), needs: [['create-stream']] },
  { protocol: 'wire', method: 'PATCH', path: wire(), ...json('{}'), needs: [['reconfigure-stream']] },
  { protocol: 'wire', method: 'DELETE', path: wire('-gone'), needs: [['delete-stream']] },
  { protocol: 'durable', method: 'GET', path: durable(), needs: [['read']] },
  { protocol: 'durable', method: 'GET', path: durable('?offset=-1&live=long-poll'), needs: [['read']] },
  { protocol: 'durable', method: 'GET', path: durable('?offset=-1&live=sse'), needs: [['read']] },
  {
    protocol: 'durable',
    method: 'HEAD',
    path: durable(),
    needs: [['check-tail'], ['read'], ['get-stream-config']],
  },
  { protocol: 'durable', method: 'POST', path: durable(), headers: TEXT, body: 'b', needs: [['append']] },
  { protocol: 'durable', method: 'PUT', path: durable('-new'), headers: TEXT, needs: [['create-stream']] },
  {
    protocol: 'durable',
    method: 'PUT',
    path: durable('-first'),
    headers: TEXT,
    body: 'b',
    needs: [['create-stream', 'append']],
  },
  {
    protocol: 'durable',
    method: 'PUT',
    path: durable('-closed'),
    headers: { ...TEXT, 'stream-closed': 'true' },
    needs: [['create-stream', 'append']],
  },
  { protocol: 'durable', method: 'DELETE', path: durable('-gone'), needs: [['delete-stream']] },
]

const titled = ROWS.map((row) => [row.protocol, row.method, row.path('s'), row] as const)

async function startEngine(): Promise<Engine> {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).createStream('mine/s', {}, { metadata: TEXT, records: ['a'] })
  return hw
}

function caller(hw: Engine, options: { readonly auth?: 'none'; readonly cors?: readonly string[] } = {}) {
  const handlers = {
    wire: createHandler(hw, { ...options, onError: () => {} }),
    durable: createDurableStreamsHandler(hw, { ...options, basin: BASIN, longPollMs: 0, onError: () => {} }),
  }
  return async (row: Row, stream: string, headers: Readonly<Record<string, string>>, method = row.method) => {
    const init = {
      method,
      headers: { ...(row.protocol === 'wire' && { 'svc-basin': BASIN }), ...row.headers, ...headers },
      ...(method === row.method && row.body !== undefined && { body: row.body }),
    }
    const response = await handlers[row.protocol](new Request(`http://localhost${row.path(stream)}`, init))
    await response.body?.cancel()
    return response
  }
}

async function statusWith(hw: Engine, row: Row, ops: readonly Operation[]) {
  const streams = { prefix: 'mine/' }
  const token = await hw.issueAccessToken({
    id: crypto.randomUUID(),
    scope: { basins: { exact: BASIN }, streams, ops: [...ops] },
  })
  return (await caller(hw)(row, 'mine/s', { authorization: `Bearer ${token}` })).status
}

test.each(titled)('%s %s %s: each operation that it needs, and no other', async (_, __, ___, row) => {
  const hw = await startEngine()
  const forbidden = async (ops: readonly Operation[]) => (await statusWith(hw, row, ops)) === 403
  const alone = row.needs.filter((ops) => ops.length === 1).flat()
  for (const op of OPERATIONS) {
    if (!alone.includes(op)) expect([op, await forbidden([op])]).toEqual([op, true])
  }
  const needed = new Set(row.needs.flat())
  const others = OPERATIONS.filter((op) => !needed.has(op))
  expect(await forbidden(others)).toBe(true)
  // Last: creating again what exists needs less.
  for (const ops of row.needs) expect([ops, await forbidden(ops)]).toEqual([ops, false])
})

const ALLOWED = 'https://app.example'
const OTHER = 'https://other.example'

test.each(titled)('%s %s %s: the origins that are allowed', async (_, __, ___, row) => {
  const hw = await startEngine()
  const open = caller(hw, { auth: 'none', cors: [ALLOWED] })
  const from = (origin: string) => ({ origin, 'sec-fetch-site': 'cross-site' })
  const allowed = await open(row, 'mine/s', from(ALLOWED))
  expect(allowed.status).not.toBe(403)
  expect(allowed.headers.get('access-control-allow-origin')).toBe(ALLOWED)
  expect(allowed.headers.get('vary')).toContain('origin')
  const refused = await open(row, 'mine/s', from(OTHER))
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([403, null])
  const closed = await caller(hw, { auth: 'none' })(row, 'mine/s', from(ALLOWED))
  expect([closed.status, closed.headers.get('access-control-allow-origin')]).toEqual([403, null])
  const preflight = { ...from(ALLOWED), 'access-control-request-method': row.method }
  const asked = await open(row, 'mine/s', preflight, 'OPTIONS')
  expect([asked.status, asked.headers.get('access-control-allow-methods')]).toEqual([204, row.method])
  // With tokens, any page may ask: without the token it learns nothing.
  const anonymous = await caller(hw)(row, 'mine/s', from(OTHER))
  expect([anonymous.status, anonymous.headers.get('access-control-allow-origin')]).toEqual([401, OTHER])
})
