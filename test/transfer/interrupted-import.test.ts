import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { copy } from '../../adapters/transfer/copy.ts'
import { importEntries } from '../../adapters/transfer/import-entries.ts'
import { entriesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../adapters/transfer/service.ts'
import { fenceRecord, type RecordInput, trimRecord } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { shareOfRuns } from '../support/property-runs.ts'
import { contentOf, exported, imported, KEY, type Kind, openEndpoint, withStreams } from './support.ts'

const complete: Partial<Record<Kind, Promise<string>>> = {}

/** Streams of all kinds that a target takes: trimmed ones go into a directory only. */
function completeExport(kind: Kind): Promise<string> {
  complete[kind] ??= newExport(kind)
  return complete[kind]
}

async function newExport(kind: Kind): Promise<string> {
  const { hw, service, basin } = await openEndpoint()
  const timestamping = { mode: 'client-prefer', uncapped: true } as const
  await hw.createBasin('basin-a')
  await basin.createStream('early', { timestamping: { uncapped: true } })
  await basin.stream('early').append([
    { body: 'a', timestamp: 3 },
    { ...fenceRecord('me'), timestamp: 6 },
  ])
  await basin.stream('early').append([{ body: Uint8Array.of(0xfe), timestamp: 9 }])
  await basin.createStream('none', { timestamping })
  if (kind === 'directory') {
    await basin.createStream('trimmed', { deleteOnEmpty: { minAgeSeconds: 600 } })
    await basin.stream('trimmed').append(['x', 'y', fenceRecord('me'), trimRecord(3), 'kept'])
    await basin.createStream('trimmed-whole')
    await basin.stream('trimmed-whole').append([fenceRecord('lock'), 'x', trimRecord(3)])
  }
  await basin.createStream('written', { timestamping })
  await basin.stream('written').append(['x', 'y', 'z'])
  await hw.createBasin('basin-b', { streamCipher: 'aes-256-gcm', createStreamOnRead: true })
  await hw.basin('basin-b').createStream('sealed')
  await hw.basin('basin-b').stream('sealed', { encryptionKey: KEY }).append(['secret', 'more'])
  if (kind === 'directory') await hw.basin('basin-b').reconfigure({ streamCipher: null })
  return exported(service)
}

const CUT_OFF = { message: expect.stringContaining('the input is truncated') }

it('an import over a bad connection writes everything once, however often it is continued', {
  tags: ['slow'],
}, async () => {
  const text = await completeExport('server')
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
          expect(String(error)).toMatch(/cannot reach|unavailable|seq_num_mismatch\)$/)
        }
      }
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
    const text = await completeExport(kind)
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
        await expect(imported(target.service, part)).rejects.toThrow(/^the input is (truncated|empty)/)
        await imported(target.service, text, { resume: true })
        expect(contentOf(await exported(target.service))).toBe(contentOf(text))
        await target.hw.close()
      }),
      // A run is a whole import and an export.
      shareOfRuns(1 / 3),
    )
  })

  it('changes nothing when it is repeated', { tags: ['slow'] }, async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    const before = target.requests.length
    await imported(target.service, text, { resume: true })
    expect(target.requests.slice(before).filter((request) => request.startsWith('POST'))).toEqual([])
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  })

  it.each([
    ['another time', '"timestamp":6', '"timestamp":7'],
    ['another body', '"body":"me"', '"body":"you"'],
    ['another header', '"headers":[["","fence"]]', '"headers":[["a","fence"]]'],
  ])('does not continue a stream that ends with %s', async (_, original, other) => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    const part = text.slice(0, text.indexOf('{"seq_num":2'))
    await expect(imported(target.service, part.replace(original, other))).rejects.toMatchObject(CUT_OFF)
    const rejection = expect(imported(target.service, text, { resume: true }))
    await rejection.rejects.toThrow('its records are not those of the export')
  })

  it('does not continue an encrypted stream with another key', async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    const part = text.slice(0, text.indexOf('{"seq_num":1', text.indexOf('"secret"')))
    const another = target.with({ encryptionKey: Buffer.alloc(32, 8).toString('base64') })
    await expect(imported(another, part)).rejects.toMatchObject(CUT_OFF)
    const rejection = expect(imported(target.service, text, { resume: true }))
    await rejection.rejects.toThrow('decryption')
  })

  it('does not continue a stream that is longer', { tags: ['slow'] }, async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    await target.stream('written').append('more')
    const rejection = expect(imported(target.service, text, { resume: true }))
    await rejection.rejects.toThrow('stream written of basin basin-a ends at 4')
  })

  it('rejects streams that have records, and basins with another configuration', async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    await target.hw.createBasin('basin-a')
    await target.basin.createStream('early')
    await target.stream('early').append('mine')
    await expect(imported(target.service, text)).rejects.toThrow(
      'stream early of basin basin-a already has records; continue it with `--resume`',
    )
    await expect(imported(target.service, text, { resume: true })).rejects.toThrow(
      'its records are not those of the export',
    )
    expect((await target.stream('early').readBatch({ seqNum: 0 })).records).toMatchObject([{ body: 'mine' }])
    const other = await openEndpoint({ kind })
    await other.hw.createBasin('basin-a', { createStreamOnRead: true })
    await expect(imported(other.service, text)).rejects.toThrow(
      'basin basin-a already exists with another configuration',
    )
  })

  it('never stores encrypted records as plain text', async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    await expect(imported(target.with({ encryptionKey: undefined }), text)).rejects.toThrow(
      'stream sealed of basin basin-b is encrypted; a key is required',
    )
    const plain = await openEndpoint({ kind })
    await plain.hw.createBasin('basin-b')
    await plain.hw.basin('basin-b').createStream('sealed')
    await expect(imported(plain.service, text, { resume: true })).rejects.toThrow(
      'stream sealed of basin basin-b already exists with another cipher: none',
    )
  })

  it('fails if another client appends', async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    const start = text.indexOf('\n', text.indexOf('{"stream":"written"')) + 1
    async function* input() {
      yield utf8(text.slice(0, start))
      await target.stream('written').append([{ body: 'mine', timestamp: 1 }])
      yield utf8(text.slice(start))
    }
    const importing = importEntries(entriesOf(input()), target.service, { filter: EVERYTHING, resume: false })
    await expect(importing).rejects.toThrow('another client appends to it')
  })

  it('imports only the streams that the filters match', async () => {
    const text = await completeExport(kind)
    const target = await openEndpoint({ kind })
    const filter = { basins: { exact: 'basin-a' }, streams: { prefix: 'e' } }
    const counts = await imported(target.service, text, { filter })
    expect(counts).toEqual({ basins: 1, streams: 1, records: 3 })
    expect((await target.hw.listBasins()).items.map(({ name }) => name)).toEqual(['basin-a'])
    const names = (await target.basin.listStreams()).items.map(({ name }) => name)
    expect(names).toEqual(['early'])
  })
})

it.each<Kind>(['server', 'directory'])(
  'a %s keeps the timestamps of records that had those of their arrival',
  async (kind) => {
    const source = await withStreams(['s'])
    await source.stream('s').reconfigure({ timestamping: { mode: 'arrival' } })
    await source.stream('s').append('a')
    const target = await openEndpoint({ kind })
    await target.clock.advance('1h')
    const warnings: string[] = []
    await imported(target.service, await exported(source.service), {
      onWarning: (message) => warnings.push(message),
    })
    const [{ records }, { records: stored }] = [
      await source.stream('s').readBatch(),
      await target.stream('s').readBatch(),
    ]
    expect(stored).toEqual(records)
    expect((await target.stream('s').config()).timestamping.mode).toBe('client-prefer')
    expect(warnings).toEqual([
      expect.stringMatching(/^stream s of basin basin-a takes the timestamps of clients/),
    ])
  },
)

it('a timestamp in the future of the target becomes the time of the import, with one warning', async () => {
  const source = await withStreams(['s', 'uncapped', 'past'])
  await source.stream('uncapped').reconfigure({ timestamping: { uncapped: true } })
  await source.stream('past').append('a')
  await source.clock.advance('1h')
  await source.stream('uncapped').append('a')
  // More than one append.
  for (let i = 0; i < 3; i++) await source.stream('s').append(Array.from({ length: 500 }, () => 'x'))
  const text = await exported(source.service)
  const target = await openEndpoint()
  const warnings: string[] = []
  const onWarning = (message: string) => warnings.push(message)
  await imported(target.service, text, { onWarning })
  await imported(target.service, text, { resume: true, onWarning })
  expect(warnings).toEqual([
    'stream s of basin basin-a has records with times in the future of the target, ' +
      'which get its time instead',
  ])
  const { records } = await target.stream('s').readBatch()
  expect(new Set(records.map(({ timestamp }) => timestamp))).toEqual(new Set([target.clock.now()]))
  for (const name of ['uncapped', 'past']) {
    expect(await target.stream(name).checkTail()).toEqual(await source.stream(name).checkTail())
  }
})

it('a copy that follows warns of a stream once', async () => {
  const source = await withStreams(['s'])
  const target = await openEndpoint()
  await source.clock.advance('1h')
  await source.stream('s').append('a')
  const warnings: string[] = []
  let passes = 0
  await copy(source.service, target.service, {
    filter: EVERYTHING,
    resume: false,
    now: () => source.clock.now(),
    onWarning: (message) => warnings.push(message),
    async nextPass() {
      await source.stream('s').append('a')
      return { isLast: ++passes === 2 }
    },
  })
  expect((await target.stream('s').checkTail()).seqNum).toBe(3)
  expect(warnings).toEqual([expect.stringMatching(/^stream s of basin basin-a has records with times/)])
})

/** Streams whose tail is at 3, without a record up to there that an import could compare. */
const WITHOUT_RECORDS: readonly [string, readonly RecordInput[]][] = [
  ['no records', ['a', 'b', trimRecord(3)]],
  ['later records only', ['a', 'b', trimRecord(3), 'c']],
]

it.each(WITHOUT_RECORDS)('does not continue a newer stream from an export with %s', async (_, inputs) => {
  const source = await withStreams(['s'])
  await source.stream('s').reconfigure({ retentionPolicy: { ageSeconds: 3600 } })
  await source.stream('s').append(inputs)
  const text = await exported(source.service)

  const copied = await openEndpoint({ kind: 'directory' })
  await imported(copied.service, text)
  await imported(copied.service, text, { resume: true })
  expect(await copied.stream('s').checkTail()).toEqual(await source.stream('s').checkTail())

  const other = await withStreams(['s'], { kind: 'directory' })
  await other.clock.advance('1h')
  await other.stream('s').append(['1', '2', '3'])
  const before = await other.stream('s').config()
  await expect(imported(other.service, text, { resume: true })).rejects.toThrow(
    'its records are not those of the export',
  )
  expect(await other.stream('s').config()).toEqual(before)
  expect((await other.stream('s').checkTail()).seqNum).toBe(3)
})

it('does not continue a newer stream whose records have expired', async () => {
  const source = await withStreams(['s'])
  await source.stream('s').append(['a', 'b'])
  const text = await exported(source.service)
  const other = await withStreams(['s'])
  await other.stream('s').reconfigure({ retentionPolicy: { ageSeconds: 1 } })
  await other.clock.advance('1h')
  await other.stream('s').append(['1', '2'])
  await other.clock.advance('5s')
  await expect(imported(other.service, text, { resume: true })).rejects.toThrow(
    'its records are not those of the export',
  )
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
  expect(new Set(records).size).toBeGreaterThan(1)
  expect(progress.at(-1)).toEqual({ basins: 1, streams: 1, records: 600, stream: undefined })
})
