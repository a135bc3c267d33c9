import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importLines } from '../../adapters/transfer/import-lines.ts'
import { linesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../adapters/transfer/name-filter.ts'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { shareOfRuns } from '../support/property-runs.ts'
import { contentOf, exported, imported, KEY, type Kind, openEndpoint, withStreams } from './support.ts'

let complete: Promise<string> | undefined

/** Streams that are trimmed, fenced, encrypted, and with gaps in the middle and at the end. */
function completeExport(): Promise<string> {
  complete ??= newExport()
  return complete
}

async function newExport(): Promise<string> {
  const { hw, clock, service } = await openEndpoint()
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  await basin.createStream('gaps', { retentionPolicy: 'infinite', timestamping: { uncapped: true } })
  const gaps = basin.stream('gaps')
  await gaps.append([
    { body: 'a', timestamp: 3 },
    { body: 'b', timestamp: 5 },
  ])
  await basin.stream('gaps').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
  await gaps.append([
    { ...fenceRecord('lost'), timestamp: 6 },
    { body: 'gone', timestamp: 7 },
  ])
  await basin.stream('gaps').reconfigure({ retentionPolicy: 'infinite' })
  await gaps.append([{ body: Uint8Array.of(0xfe), timestamp: 9 }])
  await basin.stream('gaps').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
  await gaps.append([{ body: 'gone', timestamp: 11 }])
  await basin.stream('gaps').reconfigure({ retentionPolicy: 'infinite' })
  await basin.createStream('none')
  await basin.createStream('trimmed', { deleteOnEmpty: { minAgeSeconds: 600 } })
  await basin.stream('trimmed').append(['x', 'y', fenceRecord('me'), trimRecord(3), 'kept'])
  await basin.createStream('trimmed-whole')
  await basin.stream('trimmed-whole').append([fenceRecord('lock'), 'x', trimRecord(3)])
  await hw.createBasin('basin-b', { streamCipher: 'aes-256-gcm', createStreamOnRead: true })
  await hw.basin('basin-b').createStream('sealed')
  await hw.basin('basin-b').stream('sealed', { encryptionKey: KEY }).append(['secret', 'more'])
  await hw.basin('basin-b').reconfigure({ streamCipher: null })
  await clock.advance('2s')
  return exported(service)
}

const CUT_OFF = { kind: 'incomplete', message: expect.stringContaining('the input is truncated') }

it('an import over a bad connection writes everything once, however often it is continued', {
  tags: ['slow'],
}, async () => {
  const text = await completeExport()
  const faults = fc.infiniteStream(fc.constantFrom('fine', 'fine', 'lost', 'unanswered', 'busy'))
  await fc.assert(
    fc.asyncProperty(faults, async (faults) => {
      const target = await openEndpoint({
        wrapFetch: (fetch) => async (request) => {
          const fault = faults.next().value
          if (fault === 'lost') throw new Error('lost')
          if (fault === 'busy') return Response.json({ code: 'unavailable', message: 'm' }, { status: 503 })
          const answer = await fetch(request)
          if (fault === 'unanswered') throw new Error('unanswered')
          return answer
        },
      })
      for (let resume = false; ; resume = true) {
        try {
          await imported(target.service, text, { resume })
          break
        } catch (error) {
          expect(String(error)).toMatch(/cannot reach|unavailable/)
        }
      }
      await target.clock.advance('1s')
      let out: string | undefined
      while (out === undefined) out = await exported(target.service).catch(() => undefined)
      expect(contentOf(out)).toBe(contentOf(text))
      await target.hw.close()
    }),
    shareOfRuns(1 / 3),
  )
})

describe.each<Kind>(['server', 'directory'])('an import into a %s', (kind) => {
  it('continues after truncation of its input at any byte', { tags: ['slow'] }, async () => {
    const text = await completeExport()
    const plain = utf8(text)
    const lineEnd = fc.constantFrom(...[...text.matchAll(/\n/g)].map(({ index }) => index + 1))
    const cutInput = fc.oneof(
      lineEnd.filter((end) => end < plain.length).map((end) => plain.subarray(0, end)),
      fc.integer({ min: 1, max: plain.length - 1 }).map((end) => plain.subarray(0, end)),
      // Without its checksum, a compressed input is complete only to its last byte.
      fc.integer({ min: 1, max: gzipSync(plain).length - 10 }).map((end) => gzipSync(plain).subarray(0, end)),
    )
    await fc.assert(
      fc.asyncProperty(cutInput, async (part) => {
        const target = await openEndpoint({ kind })
        await expect(imported(target.service, part)).rejects.toMatchObject({ kind: 'incomplete' })
        await imported(target.service, text, { resume: true })
        await target.clock.advance('1s')
        expect(contentOf(await exported(target.service))).toBe(contentOf(text))
        await target.hw.close()
      }),
      // A run is a whole import and an export.
      shareOfRuns(1 / 3),
    )
  })

  it('changes nothing when it is repeated', { tags: ['slow'] }, async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    const before = target.requests.length
    await imported(target.service, text, { resume: true })
    expect(target.requests.slice(before).filter((request) => request.startsWith('POST'))).toEqual([])
    await target.clock.advance('1s')
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  })

  it.each<[string, (part: string) => string]>([
    ['ends at another time', (part) => part.replace('"timestamp":9', '"timestamp":8')],
    [
      'ends between records at a time that does not fit',
      (part) => part.slice(0, part.indexOf('{"seq_num":1')).replace('"timestamp":3', '"timestamp":6'),
    ],
  ])('does not continue a stream that %s', { tags: ['slow'] }, async (_, change) => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    const part = text.slice(0, text.indexOf('{"stream_end":"gaps"'))
    await expect(imported(target.service, change(part))).rejects.toMatchObject(CUT_OFF)
    const rejection = expect(imported(target.service, text, { resume: true }))
    await rejection.rejects.toThrow('its records are not those of the export')
  })

  it('does not continue a stream that is longer', { tags: ['slow'] }, async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    await target.stream('trimmed').append('more')
    const rejection = expect(imported(target.service, text, { resume: true }))
    await rejection.rejects.toThrow('already ends at 6, after the exported tail')
  })

  it('rejects streams that have records, and basins with another configuration', async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    await target.hw.createBasin('basin-a')
    await target.basin.createStream('gaps')
    await target.stream('gaps').append('mine')
    await expect(imported(target.service, text)).rejects.toThrow(
      'line 3: stream gaps of basin basin-a already has records; continue it with `--resume`',
    )
    await expect(imported(target.service, text, { resume: true })).rejects.toThrow(
      'its records are not those of the export',
    )
    expect((await target.stream('gaps').readBatch({ seqNum: 0 })).records).toMatchObject([{ body: 'mine' }])
    const other = await openEndpoint({ kind })
    await other.hw.createBasin('basin-a', { createStreamOnRead: true })
    await expect(imported(other.service, text)).rejects.toThrow(
      'line 2: basin basin-a already exists with another configuration',
    )
  })

  it('never stores encrypted records as plain text', async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    await expect(imported(target.with({ encryptionKey: undefined }), text)).rejects.toThrow(
      'stream sealed of basin basin-b is encrypted; a key is required',
    )
    await target.hw.basin('basin-b').createStream('sealed')
    await expect(imported(target.service, text, { resume: true })).rejects.toThrow(
      'stream sealed of basin basin-b already exists with another cipher: none',
    )
  })

  it('fails if another client appends', async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    const start = text.indexOf('\n', text.indexOf('{"stream":"trimmed"')) + 1
    async function* input() {
      yield utf8(text.slice(0, start))
      const stream = target.basin.stream('trimmed')
      await stream.append([{ body: 'mine', timestamp: 1 }])
      yield utf8(text.slice(start))
    }
    const options = { filter: EVERYTHING, resume: false }
    const importing = importLines(linesOf(input()), target.service, options)
    await expect(importing).rejects.toThrow('another client appends to it')
  })

  it('imports only the streams that the filters match', async () => {
    const text = await completeExport()
    const target = await openEndpoint({ kind })
    const filter = { basins: { exact: 'basin-a' }, streams: { prefix: 'trimmed' } }
    const counts = await imported(target.service, text, { filter })
    expect(counts).toEqual({ basins: 1, streams: 2, records: 2 })
    expect((await target.hw.listBasins()).items.map(({ name }) => name)).toEqual(['basin-a'])
    const names = (await target.basin.listStreams()).items.map(({ name }) => name)
    expect(names).toEqual(['trimmed', 'trimmed-whole'])
  })
})

it('an import reports its progress', async () => {
  const source = await withStreams(['s'])
  const bodies = Array.from({ length: 200 }, () => 'x')
  for (let i = 0; i < 3; i++) await source.stream('s').append(bodies)
  const progress: { records: number }[] = []
  await imported((await openEndpoint()).service, await exported(source.service), {
    onProgress: (counts, stream) => progress.push({ ...counts, ...{ stream } }),
  })
  expect(progress).toContainEqual(expect.objectContaining({ basins: 1, streams: 0, stream: 's' }))
  const records = progress.map((counts) => counts.records)
  expect(records).toEqual(records.toSorted((a, b) => a - b))
  expect(new Set(records).size).toBeGreaterThan(3)
  expect(progress.at(-1)).toEqual({ basins: 1, streams: 1, records: 600, stream: undefined })
})
