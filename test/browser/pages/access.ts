import { createHandler } from '../../../adapters/http/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type AccessScopeInput, type Headwater, HeadwaterError, open } from '../../../src/index.ts'
import { EventReader } from './event-reader.ts'

const BASIN = 'in-a-page'
const READER: AccessScopeInput = {
  basins: { exact: BASIN },
  streams: { prefix: 'tenant/' },
  opGroups: { basin: { read: true }, stream: { read: true } },
}

/** The stream `tenant/orders` with a record, and one of somebody else. */
async function start() {
  const hw = await open({ storage: memory() })
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).stream('tenant/orders').append('first')
  await hw.basin(BASIN).stream('other/orders').append('not for all')
  return hw
}

function issueReader(hw: Headwater): Promise<string> {
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

/** The same with its message. */
async function words(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'none'
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return `${error.status} ${error.code}: ${error.message}`
  }
}

/** What the holder of a token sees, what it is refused, and how what it has open ends. */
export async function holder() {
  const hw = await start()
  const tenant = hw.as(await issueReader(hw)).basin(BASIN)
  const names = (await tenant.listStreams()).items.map(({ name }) => name)
  const bodies: string[] = []
  const following = refusal(
    tenant
      .stream('orders')
      .read({ seqNum: 0 })
      .text$.forEach(({ body }) => {
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

/** The handler in this page, for nobody, for the holder of a token, and for the root. */
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

/** What was used, told by the engine and by the handler. */
export async function metrics() {
  const hw = await start()
  const orders = hw.basin(BASIN).stream('tenant/orders')
  await orders.append(['x', 'y'])
  await hw.basin(BASIN).listStreams()
  await hw.basin(BASIN).listStreams()
  // What happens now is before the end.
  const end = Math.floor(hw.now() / 1000) + 1
  const range = { start: end - 3600, end }
  const [size] = await orders.metrics({ set: 'storage', ...range })
  const operations = await hw.basin(BASIN).metrics({ set: 'basin-ops', ...range })
  const handle = createHandler(hw, { open: true })
  const path = `/v1/metrics/${BASIN}?set=append-throughput&start=${range.start}&end=${end}`
  const response = await handle(new Request(`http://localhost${path}`))
  const told = { status: response.status, body: (await response.json()) as unknown }
  await hw.close()
  return { size, operations, told }
}

/** On a page that is not secure: what works all the same, and what is refused in which words. */
export async function insecure() {
  const hw = await open({ storage: memory() })
  await hw.createBasin(BASIN)
  const stream = hw.basin(BASIN).stream('plain')
  const bodies: string[] = []
  await stream.append('a')
  for await (const { text } of stream.read({ seqNum: 0 })) {
    bodies.push(...text.map(({ body }) => body))
    if (bodies.length === 1) await stream.append('b')
    if (bodies.length === 2) break
  }
  const streamCipher = 'aes-256-gcm'
  const refusals = {
    create: await words(hw.createBasin('vault', { streamCipher })),
    ensure: await words(hw.ensureBasin('vault', { streamCipher })),
    reconfigure: await words(hw.reconfigureBasin(BASIN, { streamCipher })),
    issue: await words(hw.issueAccessToken({ id: 'x', scope: READER })),
    createRoot: await words(hw.createRootToken()),
    setRoot: await words(hw.setRootToken('a-root-token-of-a-test')),
    as: await words(hw.as(btoa('?'.repeat(40))).listBasins()),
  }
  const handle = createHandler(hw, { onError: (error) => errors.push(String(error)) })
  const errors: string[] = []
  const headers = { authorization: 'Bearer a-root-token-of-a-test' }
  const response = await handle(new Request('http://localhost/v1/basins', { headers }))
  const answered = { status: response.status, body: (await response.json()) as unknown }
  const openHandler = createHandler(hw, { open: true })
  const listed = (await openHandler(new Request('http://localhost/v1/basins'))).status
  const basins = (await hw.listBasins()).items.map(({ name }) => name)
  const { streamCipher: kept } = await hw.basinConfig(BASIN)
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
