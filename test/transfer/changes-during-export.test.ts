import { describe, expect, it } from 'vitest'
import { exportEntries } from '../../adapters/transfer/export-entries.ts'
import { linesOfEntries } from '../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../adapters/transfer/service.ts'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { type Endpoint, exported, imported, NOW, openEndpoint, withStreams } from './support.ts'

const open = (options: Parameters<typeof withStreams>[1] = {}) => withStreams(['s', 't'], options)
const thousandBodies = (text: string) => Array.from({ length: 1000 }, (_, i) => `${text} ${i}`)

/** Deletes stream s and creates it again with batches of 1,000 records. */
async function recreate(
  source: Endpoint,
  { batches, waitMs }: { batches: number; waitMs: number },
): Promise<void> {
  await source.stream('s').delete()
  await source.clock.advance(waitMs)
  await source.basin.createStream('s')
  for (let i = 0; i < batches; i++) await source.stream('s').append(thousandBodies('new'))
}

/** All lines of an export, and its outcome if something happens after its first batch of records. */
async function exportDuring(source: Endpoint, change: () => Promise<void>) {
  let text = ''
  let hasChanged = false
  const warnings: string[] = []
  const onWarning = (message: string) => warnings.push(message)
  const options = { filter: EVERYTHING, now: NOW, onWarning }
  const reading = (async () => {
    for await (const bytes of linesOfEntries(exportEntries(source.service, options))) {
      text += Buffer.from(bytes).toString()
      if (!text.includes('{"seq_num":0') || hasChanged) continue
      hasChanged = true
      await change()
    }
    return 'complete'
  })()
  const outcome = await reading.catch(String)
  return { text, outcome, warnings }
}

/** The requests of an export before the first line of a stream. */
const LOOKS = ['/streams/s', '/s/records/tail', '/s/records', '/s/records?seq_num=0']

describe('an export whose stream is deleted and created again', () => {
  const cases: [string, { batches: number; waitMs: number }][] = [
    ['without records', { batches: 0, waitMs: 1 }],
    ['longer, a millisecond later', { batches: 5, waitMs: 1 }],
    ['as long, later', { batches: 4, waitMs: 10_000 }],
  ]

  it.each(cases)('%s, fails without mixing records', async (_, replacement) => {
    const source = await open()
    for (let i = 0; i < 4; i++) await source.stream('s').append(thousandBodies('old'))
    const { text, outcome } = await exportDuring(source, () => recreate(source, replacement))
    expect(outcome).toMatch(
      /stream s of basin basin-a(: the record \d+ is out of order| was .*created again)/,
    )
    expect(text).not.toContain('"new')
    expect(text).not.toContain('"stream_end":"s"')
  })

  it.each(LOOKS)('before %s, fails or contains the new stream', async (part) => {
    let hasChanged = false
    const source: Endpoint = await open({
      wrapFetch: (fetch) => async (request) => {
        if (!hasChanged && request.url.includes(part)) {
          hasChanged = true
          await recreate(source, { batches: 1, waitMs: 10_000 })
        }
        return fetch(request)
      },
    })
    for (let i = 0; i < 2; i++) await source.stream('s').append(thousandBodies('old'))
    const text = await exported(source.service).catch(String)
    expect(hasChanged).toBe(true)
    expect(text).not.toContain('"old')
  })
})

it('an export warns of records that are trimmed before it reads them', { tags: ['slow'] }, async () => {
  const source = await open()
  for (let i = 0; i < 3; i++) await source.stream('s').append(thousandBodies('x'))
  const { text, warnings } = await exportDuring(source, async () => {
    await source.stream('s').append(trimRecord(2_500))
  })
  expect(warnings).toEqual([
    'stream s of basin basin-a: the records 1000 to 2499 no longer exist; an import has to renumber the others',
  ])
  const target = await openEndpoint()
  await expect(imported(target.service, text)).rejects.toThrow('the records 1000 to 2499 are missing')
  const again = await openEndpoint()
  await imported(again.service, text, { renumber: true })
  expect((await again.stream('s').checkTail()).seqNum).toBe(1_500)
})

describe('an export continues with the other streams if', () => {
  it.each(LOOKS)('a stream is deleted before %s', async (part) => {
    const source: Endpoint = await open({
      wrapFetch: (fetch) => async (request) => {
        if (request.url.includes(part))
          await source
            .stream('s')
            .delete()
            .catch(() => {})
        return fetch(request)
      },
    })
    await source.stream('s').append('x')
    await source.stream('t').append('y')
    const text = await exported(source.service)
    expect(text).not.toContain('"stream":"s"')
    expect(text).toContain('{"export_end":{"basins":1,"streams":1,"records":1}}')
  })

  it.each(['/basins/basin-a', '/streams/s'])('a basin is deleted after %s', async (path) => {
    const source: Endpoint = await open({
      wrapFetch: (fetch) => async (request) => {
        const answer = await fetch(request)
        if (request.url.endsWith(path)) {
          await source.basin.delete().catch(() => {})
          await source.clock.advance('3m')
        }
        return answer
      },
    })
    await source.hw.createBasin('basin-b')
    await source.stream('s').append('x')
    const text = await exported(source.service)
    expect(text).toContain('"basin":"basin-b"')
    expect(text).toContain('{"export_end":{"basins":2,"streams":0,"records":0}}')
  })
})

it('the fencing token of an export is the one at its tail', async () => {
  let asked = 0
  const source: Endpoint = await open({
    wrapFetch: (fetch) => async (request) => {
      const isToken = request.method === 'POST'
      const answer = await fetch(request)
      // After the token is read, before the tail is.
      if (isToken && asked++ === 0) await source.stream('s').append(['x', fenceRecord('new')])
      return answer
    },
  })
  await source.stream('s').append([fenceRecord('old'), trimRecord(1)])
  const text = await exported(source.service)
  const target = await openEndpoint({ kind: 'directory' })
  await imported(target.service, text)
  expect(await target.service.fencingToken({ basin: 'basin-a', name: 's', cipher: null })).toBe('new')
})
