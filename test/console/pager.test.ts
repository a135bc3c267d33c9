import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../adapters/console/connection.ts'
import { StreamSearch } from '../../adapters/console/stream/paged-records.ts'
import { PAGE_RECORDS, Pager, RecordWindow } from '../../adapters/console/stream/pager.ts'
import { matcherOf, parseQuery } from '../../adapters/console/stream/query.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, type ReadQuery, type Stream } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', headerPrefix: 'svc' } as const
const BASIN = 'basin-of-pages'

type Fetch = (request: Request) => Promise<Response>

async function served(
  count: number,
  body = (index: number) => `record ${index}`,
  through = (fetch: Fetch) => fetch,
) {
  const hw = await open({ storage: memory(), trimGraceMs: 0 })
  onTestFinished(() => hw.close())
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).createStream('logs')
  const stream = hw.basin(BASIN).stream('logs')
  await appendTo(stream, count, body)
  const requests: string[] = []
  const handler = through(createHandler(hw, { auth: 'none' }))
  const connection = new Connection((request) => {
    requests.push(`${request.headers.get('accept') ?? ''} ${new URL(request.url).search}`)
    return handler(request)
  }, TARGET)
  onTestFinished(() => connection.close())
  return { stream, remote: connection.hw.basin(BASIN).stream('logs'), connection, requests }
}

async function appendTo(stream: Stream, count: number, body: (index: number) => string): Promise<void> {
  const bodies = Array.from({ length: count }, (_, index) => body(index))
  const size = bodies[0]!.length > 1000 ? 5 : 500
  for (let start = 0; start < count; start += size) await stream.append(bodies.slice(start, start + size))
}

function pagerOf(stream: Stream): Pager {
  const pager = new Pager(stream, () => {})
  onTestFinished(() => pager.close())
  return pager
}

const extent = ({ window }: Pager) => [window.first, window.end]

describe('a pager', () => {
  it('loads pages in both directions from a position, and reads nothing beyond them', async () => {
    const { remote, requests } = await served(2600)
    const pager = pagerOf(remote)
    pager.open({ seqNum: 1000 })
    await expect.poll(() => extent(pager)).toEqual([1000, 1500])
    await expect.poll(() => pager.behind).toBe(1100)
    expect([pager.hasOlder, pager.hasNewer, pager.state.kind]).toEqual([true, true, 'idle'])
    pager.older()
    pager.older()
    await expect.poll(() => extent(pager)).toEqual([500, 1500])
    await expect.poll(() => pager.isLoading).toBe(false)
    pager.newer()
    await expect.poll(() => extent(pager)).toEqual([500, 2000])
    expect(requests.filter((request) => request.includes('event-stream'))).toEqual([])
  })

  it('stops at the first record, and follows at the tail', async () => {
    const { remote, stream } = await served(PAGE_RECORDS + 100)
    const pager = pagerOf(remote)
    pager.open({ seqNum: 50 })
    await expect.poll(() => extent(pager)).toEqual([50, 550])
    await expect.poll(() => pager.isLoading).toBe(false)
    pager.older()
    await expect.poll(() => extent(pager)).toEqual([0, 550])
    await expect.poll(() => pager.hasOlder).toBe(false)
    await expect.poll(() => pager.isLoading).toBe(false)
    pager.newer()
    await expect.poll(() => pager.state.kind).toBe('live')
    await stream.append(['new', 'newer'])
    await expect.poll(() => extent(pager)).toEqual([0, 602])
    expect(pager.behind).toBe(0)
  })

  it('begins at the first record that a trim has left, and reports that there is none before', async () => {
    const { remote, stream } = await served(1000)
    await stream.trim(700)
    const pager = pagerOf(remote)
    await expect
      .poll(async () => (await stream.readBatch({ seqNum: 0, count: 1 })).records[0]?.seqNum)
      .toBe(700)
    pager.open({ seqNum: 900 })
    await expect.poll(() => pager.window.first).toBe(900)
    await expect.poll(() => pager.isLoading).toBe(false)
    pager.older()
    await expect.poll(() => [pager.window.first, pager.hasOlder]).toEqual([700, false])
  })

  it('skips nothing between a pause and its end', async () => {
    const { remote, stream } = await served(3)
    const pager = pagerOf(remote)
    pager.open({ tailOffset: 100 })
    await expect.poll(() => pager.window.end).toBe(3)
    pager.pause()
    await appendTo(stream, 700, String)
    pager.resume()
    await expect.poll(() => extent(pager)).toEqual([0, 503])
    await expect.poll(() => pager.isLoading).toBe(false)
    pager.newer()
    await expect.poll(() => extent(pager)).toEqual([0, 703])
  })
})

describe('a pager at the tail', () => {
  it('continues after lost connections without a gap or a repeat, and reports them', {
    tags: ['slow'],
  }, async () => {
    let connections = 0
    const breaking = (handler: Fetch) => async (request: Request) => {
      const response = await handler(request)
      if (request.headers.get('accept') !== 'text/event-stream') return response
      if (++connections === 4) return response
      if (connections === 2) throw new TypeError('network')
      // Breaks off after the first chunk.
      const reader = response.body!.getReader()
      const { value } = await reader.read()
      await reader.cancel()
      return new Response(value, { headers: response.headers })
    }
    const { remote, stream } = await served(3, String, breaking)
    const errors: string[] = []
    const pager = new Pager(remote, () => {
      if (pager.state.kind === 'failed') errors.push(pager.state.error.message)
    })
    onTestFinished(() => pager.close())
    pager.open({ tailOffset: 100 })
    await expect.poll(() => connections).toBe(4)
    await stream.append('3')
    await expect.poll(() => extent(pager)).toEqual([0, 4])
    expect(pager.window.shown.map(({ seqNum }) => seqNum)).toEqual([0, 1, 2, 3])
    expect([pager.tail, errors]).toEqual([4, ['cannot reach the server: network']])
  })

  it.each([
    ['a page of something else', async () => new Response('<!doctype html>'), /unexpected response/],
    ['a stream that does not exist', undefined, /not found/],
  ])('stops with the error of %s', async (_, answer, message) => {
    const { connection } = await served(1, String, (handler) => answer ?? handler)
    const pager = pagerOf(connection.hw.basin(BASIN).stream('missing'))
    pager.open({ tailOffset: 1 })
    await expect.poll(() => pager.state).toMatchObject({ kind: 'failed', error: { message } })
  })
})

describe('the records of a window', () => {
  const records = (first: number, end: number, bytes = 1) =>
    Array.from({ length: end - first }, (_, index) => ({
      ...{ seqNum: first + index, timestamp: 0, headers: [], body: new Uint8Array(bytes) },
    }))
  const numbers = ({ shown }: RecordWindow) => [shown[0]?.seqNum, shown.at(-1)?.seqNum, shown.length]

  it('are dropped at the other end beyond its limit, and filtered', () => {
    const window = new RecordWindow()
    window.append(records(1000, 6000))
    expect(window.hasRoomFor(records(6000, 6001))).toBe(false)
    window.append(records(6000, 6001))
    expect(numbers(window)).toEqual([1001, 6000, 5000])
    expect(window.prepend(records(999, 1001))).toBe(true)
    expect(numbers(window)).toEqual([999, 5998, 5000])
    window.filter(({ seqNum }) => seqNum % 1000 === 0)
    window.append(records(5999, 6001))
    expect(window.shown.map(({ seqNum }) => seqNum)).toEqual([2000, 3000, 4000, 5000, 6000])
    expect([window.first, window.end, window.held]).toEqual([1001, 6001, 5000])
  })

  it('have bounded bytes, unless a single one exceeds them', () => {
    const window = new RecordWindow()
    window.append(records(0, 40, 1_048_576))
    expect([window.first, window.end]).toEqual([9, 40])
    window.append(records(40, 41, 64 * 1_048_576))
    expect([window.first, window.end]).toEqual([40, 41])
  })
})

describe('a search through a whole stream', () => {
  async function searching(count: number, query: string, end?: number) {
    const { remote } = await served(count, (index) => `{"n":${index}}`)
    const selects = matcherOf(parseQuery(query))
    const search = new StreamSearch(remote, end, selects, () => {})
    onTestFinished(() => search.cancel())
    await expect.poll(() => search.state).not.toBe('running')
    return { search, numbers: search.found.shown.map(({ seqNum }) => seqNum) }
  }

  it('finds every record', async () => {
    const { search, numbers } = await searching(1200, '.n>=190 .n<210')
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => 190 + index))
    expect([search.state, search.scanned, search.total]).toEqual(['done', 1200, 1200])
  })

  it('pauses at its limit, from where another one continues', async () => {
    const first = await searching(1500, '.n')
    expect([first.search.state, first.search.next]).toEqual(['limited', 500])
    expect([first.numbers[0], first.numbers.length]).toEqual([500, 1000])
    const rest = await searching(1500, '.n', first.search.next)
    expect([rest.search.state, rest.numbers[0], rest.numbers.length]).toEqual(['done', 0, 500])
  })

  it('finds the newest of large records, of which a window holds a few only', async () => {
    const body = new Uint8Array(1_000_000)
    const recordsOf = ({ seqNum = 0, count = 0 }: ReadQuery) =>
      Array.from({ length: count }, (_, index) => ({
        seqNum: seqNum + index,
        timestamp: 0,
        headers: [],
        body,
      }))
    const stream = {
      checkTail: async () => ({ seqNum: 50 }),
      readBatch: async (query: ReadQuery) => ({ records: recordsOf(query) }),
      read: (query: ReadQuery) => ({
        batches: async function* () {
          for (const record of recordsOf(query)) yield { records: [record] }
        },
      }),
    } as unknown as Stream
    const search = new StreamSearch(
      stream,
      undefined,
      () => true,
      () => {},
    )
    await expect.poll(() => search.state).toBe('limited')
    const numbers = search.found.shown.map(({ seqNum }) => seqNum)
    expect([numbers.at(-1), numbers[0]]).toEqual([49, search.next])
  })
})
