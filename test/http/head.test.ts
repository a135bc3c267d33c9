import { expect, test } from 'vitest'
import { ROUTES } from '../../adapters/http/routes.ts'
import { BASIN, bytesOf, RECORDS, startWithStream } from './support.ts'

const RANGE = '?set=storage&start=0&end=60&interval=minute'
const PATHS: [path: string, accept?: string][] = [
  ['/health'],
  ['/ping'],
  ['/metrics'],
  ['/openapi.json'],
  ['/v1/basins'],
  [`/v1/basins/${BASIN}`],
  ['/v1/basins/missing-basin'],
  ['/v1/streams'],
  ['/v1/streams/s'],
  [`${RECORDS}?seq_num=0`],
  [`${RECORDS}?seq_num=0`, 'application/protobuf'],
  [`${RECORDS}?seq_num=0`, 'text/event-stream'],
  [RECORDS],
  [`${RECORDS}/tail`],
  ['/followers'],
  [`/metrics/${BASIN}`],
  [`/metrics/${BASIN}/s`],
  ['/v1/access-tokens'],
  [`/v1/metrics${RANGE}`],
  [`/v1/metrics/${BASIN}${RANGE}`],
  [`/v1/metrics/${BASIN}/s${RANGE}`],
  ['/v1/locations'],
  ['/v1/locations/default'],
]

test.each(PATHS)(
  'HEAD %s has the status and headers of GET, and no body (%s)',
  { tags: ['slow'] },
  async (path: string, accept?: string) => {
    const { call, hw } = await startWithStream()
    await hw.basin(BASIN).stream('s').append('x'.repeat(5000))
    const headers = { 'accept-encoding': 'gzip', ...(accept !== undefined && { accept }) }
    const head = await call('HEAD', path, { headers })
    const get = await call('GET', path, { headers })
    const { 'content-length': length, ...others } = Object.fromEntries(head.headers)
    expect([head.status, others]).toEqual([get.status, Object.fromEntries(get.headers)])
    expect(await head.text()).toBe('')
    if (accept === 'text/event-stream') await get.body!.cancel()
    // The counters of /metrics may differ by a digit or two from one response to the next.
    else
      expect(Math.abs(Number(length) - (await bytesOf(get)).length)).toBeLessThan(
        path === '/metrics' ? 20 : 1,
      )
    expect(hw.stats()).toMatchObject({ openSessions: 0, openReads: 0 })
  },
)

test('the table of paths contains every GET endpoint', () => {
  const matches = (pattern: string, path: string) =>
    new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(path.split('?')[0]!)
  for (const { pattern, target } of ROUTES) {
    if (!('GET' in target)) continue
    expect(
      PATHS.some(([path]) => matches(pattern, path)),
      pattern,
    ).toBe(true)
  }
})
