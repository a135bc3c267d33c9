import { describe, expect, it, onTestFinished } from 'vitest'
import { Connection } from '../../adapters/console/connection.ts'
import { PAGE_RECORDS, Pager } from '../../adapters/console/stream/pager.ts'
import { matcherOf, parseQuery } from '../../adapters/console/stream/query.ts'
import { type SearchOrder, StreamSearch } from '../../adapters/console/stream/search.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, type Stream } from '../../src/index.ts'

const TARGET = { url: 'http://localhost:8787', basinUrl: undefined, headerPrefix: 'svc' } as const
const STREAM = { basin: 'basin-of-pages', stream: 'logs', encryptionKey: '' }

async function served(count: number, body = (index: number) => `record ${index}`) {
  const hw = await open({ storage: memory(), trimGraceMs: 0 })
  onTestFinished(() => hw.close())
  await hw.createBasin(STREAM.basin)
  const stream = await hw.basin(STREAM.basin).createStream(STREAM.stream)
  const handle = hw.basin(STREAM.basin).stream(STREAM.stream)
  await appendTo(handle, count, body)
  const requests: string[] = []
  const handler = createHandler(hw, { auth: 'none' })
  const connection = new Connection((request) => {
    requests.push(`${request.headers.get('accept') ?? ''} ${new URL(request.url).search}`)
    return handler(request)
  }, TARGET)
  onTestFinished(() => connection.close())
  return { stream: handle, connection, requests, created: stream }
}

async function appendTo(stream: Stream, count: number, body: (index: number) => string): Promise<void> {
  const bodies = Array.from({ length: count }, (_, index) => body(index))
  const size = bodies[0]!.length > 1000 ? 5 : 500
  for (let start = 0; start < count; start += size) await stream.append(bodies.slice(start, start + size))
}

function pagerOf(connection: Connection): Pager {
  const pager = new Pager(connection, STREAM, () => {})
  onTestFinished(() => pager.close())
  return pager
}

const extent = ({ window }: Pager) => [window.first, window.end]

describe('a pager', () => {
  it('loads pages in both directions from a position, and reads nothing beyond them', async () => {
    const { connection, requests } = await served(2600)
    const pager = pagerOf(connection)
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
    const { connection, stream } = await served(PAGE_RECORDS + 100)
    const pager = pagerOf(connection)
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
    expect([pager.appended, pager.behind]).toEqual([2, 0])
  })

  it('begins at the first record that a trim has left, and reports that there is none before', async () => {
    const { connection, stream } = await served(1000)
    await stream.trim(700)
    const pager = pagerOf(connection)
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
    const { connection, stream } = await served(3)
    const pager = pagerOf(connection)
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

describe('a search through a whole stream', () => {
  async function searching(count: number, query: string, order: SearchOrder = 'newest', from?: number) {
    const { connection } = await served(count, (index) => `{"n":${index}}`)
    const selects = matcherOf(parseQuery(query))
    const search = new StreamSearch(connection, STREAM, order, from, selects, () => {})
    onTestFinished(() => search.cancel())
    await expect.poll(() => search.state).not.toBe('running')
    search.found.scan()
    return { search, numbers: search.found.records().map(({ seqNum }) => seqNum) }
  }

  it.each(['newest', 'oldest'] as const)('finds every record from the %s on', async (order) => {
    const { search, numbers } = await searching(1200, '.n>=190 .n<210', order)
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => 190 + index))
    expect([search.state, search.scanned, search.total, search.part]).toEqual(['done', 1200, 1200, 1])
  })

  it('pauses at its limit, from where another one continues', async () => {
    const first = await searching(1500, '.n')
    expect([first.search.state, first.search.next]).toEqual(['limited', 500])
    expect([first.numbers[0], first.numbers.length]).toEqual([500, 1000])
    const rest = await searching(1500, '.n', 'newest', first.search.next)
    expect([rest.search.state, rest.numbers[0], rest.numbers.length]).toEqual(['done', 0, 500])
  })
})
