import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import type { AccessScopeInput } from '../../../src/model/access.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { EventReader } from './event-reader.ts'

const BASIN = 'in-a-page'
const READER: AccessScopeInput = {
  basins: { exact: BASIN },
  streams: { prefix: 'tenant/' },
  opGroups: { basin: { read: true }, stream: { read: true } },
}

/** Opens an engine with one record each in `tenant/orders` and in another tenant's stream. */
async function start() {
  const hw = await open({ storage: memory(), usage: usageMetrics() })
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).stream('tenant/orders').append('first')
  await hw.basin(BASIN).stream('other/orders').append('not for all')
  return hw
}

function issueReader(hw: Engine): Promise<string> {
  return hw.issueAccessToken({ id: 'reader', autoPrefixStreams: true, scope: READER })
}

async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'none'
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return `${error.status} ${error.code}`
  }
}

/** The same with the message. */
async function refusalWithMessage(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'none'
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return `${error.status} ${error.code}: ${error.message}`
  }
}

/** What the holder of a token can read, its refused calls, and how its open session ends. */
export async function holder() {
  const hw = await start()
  const tenant = hw.as(await issueReader(hw)).basin(BASIN)
  const names = (await tenant.listStreams()).items.map(({ name }) => name)
  const bodies: string[] = []
  const following = refusal(
    tenant
      .stream('orders')
      .follow({ seqNum: 0 })
      .records$.forEach(({ body }) => {
        bodies.push(body)
        if (bodies.length === 1) void hw.basin(BASIN).stream('tenant/orders').append('live')
        if (bodies.length === 2) void hw.revokeAccessToken('reader')
      }),
  )
  const refusals = [
    await refusal(tenant.stream('orders').append('forged')),
    await refusal(tenant.stream('../other/orders').checkTail()),
    await refusal(hw.as('').listBasins()),
    await refusal(hw.as(btoa('?'.repeat(40))).listBasins()),
  ]
  const ended = await following
  const after = await refusal(tenant.stream('orders').checkTail())
  const left = hw.stats().openReads
  await hw.close()
  return { names, bodies, refusals, ended, after, left }
}

/** Responses of the handler without a token, with an invalid one, with a reader's and with the root token. */
export async function handler() {
  const hw = await start()
  const errors: string[] = []
  const handle = createHandler(hw, { onError: (error) => errors.push(String(error)) })
  const root = await hw.createRootToken()
  const reader = await issueReader(hw)
  const call = (token: string | undefined, method: string, path: string, more: HeadersInit = {}) => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const headers = { 'svc-basin': BASIN, ...authorization, ...more }
    return handle(new Request(`http://localhost${path}`, { method, headers }))
  }
  const statuses = async (method: string, path: string) =>
    Promise.all(
      [undefined, 'no token', reader, root].map(async (token) => (await call(token, method, path)).status),
    )
  const table = {
    health: await statuses('GET', '/health'),
    basins: await statuses('GET', '/v1/basins'),
    streams: await statuses('GET', '/v1/streams'),
    tail: await statuses('GET', '/v1/streams/orders/records/tail'),
    metrics: await statuses('GET', '/metrics'),
  }
  const second = await hw.createRootToken()

  const accept = { accept: 'text/event-stream' }
  const events = new EventReader(await call(reader, 'GET', '/v1/streams/orders/records?seq_num=0', accept))
  const [batch] = await events.next()
  await call(root, 'DELETE', '/v1/access-tokens/reader')
  const ends: string[][] = []
  while (ends.at(-1)?.[0] !== 'event: error') ends.push(await events.next())
  const result = { table, second, batch, end: ends.at(-1), errors, left: hw.stats().openReads }
  await hw.close()
  return result
}

/** Metrics of the engine and of the handler. */
export async function metrics() {
  const hw = await start()
  const orders = hw.basin(BASIN).stream('tenant/orders')
  await orders.append(['x', 'y'])
  await hw.basin(BASIN).listStreams()
  await hw.basin(BASIN).listStreams()
  // In the future, so that the range includes all calls above.
  const end = (Math.floor(hw.now() / 1000) + 1) * 1000
  const range = { start: end - 3_600_000, end }
  const [size] = await orders.metrics({ set: 'storage', ...range })
  const operations = await hw.basin(BASIN).metrics({ set: 'basin-ops', ...range })
  const handle = createHandler(hw, { auth: 'none' })
  const path = `/v1/metrics/${BASIN}?set=append-throughput&start=${range.start / 1000}&end=${end / 1000}`
  const response = await handle(new Request(`http://localhost${path}`))
  const answer = { status: response.status, body: (await response.json()) as unknown }
  await hw.close()
  return { size, operations, response: answer }
}

/** What works in an insecure page, and the messages of what does not. */
export async function insecure() {
  const hw = await open({ storage: memory() })
  await hw.createBasin(BASIN)
  const stream = hw.basin(BASIN).stream('plain')
  const bodies: string[] = []
  await stream.append('a')
  for await (const { records: text } of stream.follow({ seqNum: 0 }).batches()) {
    bodies.push(...text.map(({ body }) => body))
    if (bodies.length === 1) await stream.append('b')
    if (bodies.length === 2) break
  }
  const streamCipher = 'aes-256-gcm'
  const refusals = {
    create: await refusalWithMessage(hw.createBasin('vault', { streamCipher })),
    ensure: await refusalWithMessage(hw.ensureBasin('vault', { streamCipher })),
    reconfigure: await refusalWithMessage(hw.basin(BASIN).reconfigure({ streamCipher })),
    issue: await refusalWithMessage(hw.issueAccessToken({ id: 'x', scope: READER })),
    createRoot: await refusalWithMessage(hw.createRootToken()),
    setRoot: await refusalWithMessage(hw.setRootToken('a-root-token-of-a-test')),
    as: await refusalWithMessage(hw.as(btoa('?'.repeat(40))).listBasins()),
  }
  const handle = createHandler(hw, { onError: (error) => errors.push(String(error)) })
  const errors: string[] = []
  const headers = { authorization: 'Bearer a-root-token-of-a-test' }
  const response = await handle(new Request('http://localhost/v1/basins', { headers }))
  const answered = { status: response.status, body: (await response.json()) as unknown }
  const openHandler = createHandler(hw, { auth: 'none' })
  const listed = (await openHandler(new Request('http://localhost/v1/basins'))).status
  const basins = (await hw.listBasins()).items.map(({ name }) => name)
  const { streamCipher: kept } = await hw.basin(BASIN).config()
  await hw.close()
  return {
    isSecureContext,
    hasSubtle: 'subtle' in crypto,
    bodies,
    refusals,
    answered,
    listed,
    basins,
    kept,
    errors,
  }
}
