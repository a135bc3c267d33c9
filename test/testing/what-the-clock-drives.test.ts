import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type VirtualClock, virtualClock } from '../../adapters/testing/index.ts'
import { type Basin, type Headwater, HeadwaterError, open, type Stream } from '../../src/index.ts'

let clock: VirtualClock
let hw: Headwater
let basin: Basin
let stream: Stream

beforeEach(async () => {
  clock = virtualClock()
  hw = await open({ storage: memory(), clock })
  await hw.ensureBasin('basin')
  basin = hw.basin('basin')
  await basin.ensureStream('stream')
  stream = basin.stream('stream')
})
// Nothing that time drives is left when all is closed.
afterEach(async () => {
  await hw.close()
  expect(clock.pending).toBe(0)
})

/** What something came to, once it did. */
function watched<Result>(work: Promise<Result>) {
  const state: { result?: Result | string } = {}
  work.then(
    (result) => {
      state.result = result
    },
    (error: unknown) => {
      state.result = HeadwaterError.is(error) ? error.code : String(error)
    },
  )
  return state
}

interface HttpOptions {
  readonly query?: string
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly isOpen?: boolean
}

function http({
  query = '',
  method = 'GET',
  path = 'stream/records',
  headers = {},
  isOpen = true,
}: HttpOptions = {}) {
  const handler = createHandler(hw, { open: isOpen })
  const url = `http://localhost/v1/streams/${path}${query}`
  return handler(new Request(url, { method, headers: { 'svc-basin': 'basin', ...headers } }))
}

/** The names of the events of an SSE session so far, and whether it has ended. */
async function eventsOf(response: Promise<Response>) {
  const state = { text: '', ended: false }
  const reader = (await response).body!.pipeThrough(new TextDecoderStream()).getReader()
  void (async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      state.text += value
    }
    state.ended = true
  })()
  await clock.settle()
  return {
    get names() {
      return [...state.text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
    },
    get ended() {
      return state.ended
    },
    leave: () => reader.cancel(),
  }
}

const EVENTS = { accept: 'text/event-stream' }

/** Just before its time nothing has happened, and at its time it has. */
async function drives(ms: number, before: () => unknown, after: () => unknown): Promise<void> {
  await clock.advance(ms - 1)
  await before()
  await clock.advance(1)
  await after()
}

describe('the virtual clock drives the wait of a session', () => {
  test('in the process', async () => {
    const session = watched(stream.read({ seqNum: 0, waitSeconds: 30 }).records$.forEach(() => {}))
    await drives(
      30_000,
      () => expect(hw.stats().openReads).toBe(1),
      () => expect(hw.stats().openReads).toBe(0),
    )
    expect('result' in session).toBe(true)
  })

  test('through the handler', async () => {
    const session = await eventsOf(http({ query: '?seq_num=0&wait=30', headers: EVENTS }))
    await drives(
      30_000,
      () => expect(session.ended).toBe(false),
      () => expect(session.ended).toBe(true),
    )
  })
})

describe('the virtual clock drives a long poll', () => {
  test('in the process', async () => {
    const poll = watched(stream.readBatch({ seqNum: 0, waitSeconds: 45 }))
    await drives(
      45_000,
      () => expect(poll.result).toBeUndefined(),
      () => expect(poll.result).toMatchObject({ records: [] }),
    )
  })

  test('through the handler', async () => {
    const poll = watched(http({ query: '?seq_num=0&wait=45' }).then((response) => response.json()))
    await drives(
      45_000,
      () => expect(poll.result).toBeUndefined(),
      () => expect(poll.result).toMatchObject({ records: [] }),
    )
  })
})

describe('the virtual clock drives heartbeats', () => {
  test('in the process', async () => {
    const cursor = (await stream.openRead({ seqNum: 0 }, { heartbeats: true }))!
    expect(await cursor.next()).toMatchObject({ kind: 'heartbeat', timestamp: clock.now() })
    const next = watched(cursor.next())
    await clock.advance(4_999)
    expect(next.result).toBeUndefined()
    // They come from 5 to 15 seconds apart, by chance.
    await clock.advance(10_001)
    expect(next.result).toMatchObject({ kind: 'heartbeat', tail: { seqNum: 0 } })
    cursor.close()
  })

  test('through the handler', async () => {
    const session = await eventsOf(http({ query: '?seq_num=0', headers: EVENTS }))
    expect(session.names).toEqual(['ping'])
    await clock.advance(4_999)
    expect(session.names).toEqual(['ping'])
    // They come from 5 to 15 seconds apart, by chance.
    await clock.advance(10_001)
    expect(session.names.length).toBeGreaterThan(1)
    expect(new Set(session.names)).toEqual(new Set(['ping']))
    await session.leave()
  })
})

test('the virtual clock drives the linger of a producer, which lives in the process', async () => {
  const producer = stream.producer({ lingerMs: 500 })
  const tickets = [await producer.submit('a'), await producer.submit('b')]
  const acks = watched(Promise.all(tickets.map((ticket) => ticket.ack())))
  await drives(
    500,
    async () => expect((await stream.checkTail()).seqNum).toBe(0),
    () => expect(acks.result).toMatchObject([{ seqNum: 0 }, { seqNum: 1 }]),
  )
  await producer.close()
})

describe('the virtual clock drives retention', () => {
  beforeEach(async () => {
    await basin.reconfigureStream('stream', { retentionPolicy: { ageSeconds: 3600 } })
    await stream.append('soon gone')
  })

  test('in the process', async () => {
    const read = () => stream.readBatch({ seqNum: 0 })
    await drives(
      3_600_000,
      async () => expect((await read()).records).toHaveLength(1),
      () => expect(read()).rejects.toMatchObject({ code: 'range_not_satisfiable' }),
    )
  })

  test('through the handler', async () => {
    const status = async () => (await http({ query: '?seq_num=0' })).status
    await drives(
      3_600_000,
      async () => expect(await status()).toBe(200),
      async () => expect(await status()).toBe(416),
    )
  })
})

describe('the virtual clock drives delete-on-empty', () => {
  beforeEach(async () => {
    await basin.createStream('unused', { deleteOnEmpty: { minAgeSeconds: 600 } })
  })

  // Deleted by background work, which is due a minute later at the latest.
  test('in the process', async () => {
    const names = async () => (await basin.listStreams()).items.map(({ name }) => name)
    await clock.advance(599_999)
    expect(await names()).toEqual(['stream', 'unused'])
    await clock.advance('70s')
    expect(await names()).toEqual(['stream'])
  })

  test('through the handler', async () => {
    const status = async () => (await http({ path: 'unused' })).status
    await clock.advance(599_999)
    expect(await status()).toBe(200)
    await clock.advance('70s')
    expect(await status()).toBe(404)
  })
})

describe('the virtual clock drives the expiry of tokens', () => {
  const issue = () =>
    hw.issueAccessToken({
      id: 'short',
      expiresAt: new Date(clock.now() + 60_000),
      scope: { basins: { exact: 'basin' }, streams: { prefix: '' }, ops: ['read', 'check-tail'] },
    })

  test('in the process', async () => {
    const held = hw
      .as(await issue())
      .basin('basin')
      .stream('stream')
    const following = watched(held.read({ seqNum: 0 }).records$.forEach(() => {}))
    await drives(
      60_000,
      async () => {
        expect(following.result).toBeUndefined()
        expect(await held.checkTail()).toMatchObject({ seqNum: 0 })
      },
      async () => {
        expect(following.result).toBe('authn')
        await expect(held.checkTail()).rejects.toMatchObject({ code: 'authn' })
      },
    )
  })

  test('through the handler', async () => {
    const headers = { authorization: `Bearer ${await issue()}` }
    const session = await eventsOf(
      http({ query: '?seq_num=0', headers: { ...headers, ...EVENTS }, isOpen: false }),
    )
    const tail = async () => (await http({ path: 'stream/records/tail', headers, isOpen: false })).status
    await drives(
      60_000,
      async () => expect([session.ended, await tail()]).toEqual([false, 200]),
      async () => expect([session.ended, await tail()]).toEqual([true, 401]),
    )
    expect(session.names.at(-1)).toBe('error')
  })
})

describe('the virtual clock waits, before time goes on, for', () => {
  /** Keeps the threads that compress so busy that they do not get to it within some turns of the event loop. */
  const busyThreads = () =>
    Promise.all(Array.from({ length: 8 }, () => promisify(pbkdf2)('a', 'b', 100_000, 64, 'sha512')))

  test('a compressed request', async () => {
    const body = gzipSync(JSON.stringify({ records: [{ body: 'a' }] }))
    const headers = { 'svc-basin': 'basin', 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const busy = busyThreads()
    const url = 'http://localhost/v1/streams/stream/records'
    const response = createHandler(hw, { open: true })(new Request(url, { method: 'POST', headers, body }))
    const state = watched(response.then(({ status }) => status))
    await clock.settle()
    expect(state.result).toBe(200)
    await busy
  })

  test('a compressed answer', async () => {
    await stream.append('a'.repeat(10_000))
    const busy = busyThreads()
    const response = http({ query: '?seq_num=0', headers: { 'accept-encoding': 'gzip' } })
    const state = watched(response.then(({ headers }) => headers.get('content-encoding')))
    await clock.settle()
    expect(state.result).toBe('gzip')
    await busy
  })

  test('no requests that follow each other for ever', async () => {
    const body = gzipSync(JSON.stringify({ records: [{ body: 'a' }] }))
    const headers = { 'svc-basin': 'basin', 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const handler = createHandler(hw, { open: true })
    const url = 'http://localhost/v1/streams/stream/records'
    let isOver = false
    const appending = (async () => {
      while (!isOver) await handler(new Request(url, { method: 'POST', headers, body }))
    })()
    await clock.advance(1)
    isOver = true
    await appending
  })
})
