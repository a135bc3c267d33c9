import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import {
  decodeEntry,
  type ExportEntry,
  type ExportedStream,
  encodeEntry,
} from '../../../adapters/transfer/export-entry.ts'
import { ExportProgress } from '../../../adapters/transfer/export-progress.ts'
import { importEntries } from '../../../adapters/transfer/import-entries.ts'
import { entriesOf, gunzipped, type Line, linesOf, takeLine } from '../../../adapters/transfer/lines.ts'
import { EVERYTHING, Service } from '../../../adapters/transfer/service.ts'
import { basinConfig as completeBasinConfig, mergeStreamConfig } from '../../../src/core/config.ts'
import { open } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { type SequencedRecord, sequencedRecord } from '../../../src/model/record.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { openCountsOf } from '../../support/open-counts.ts'
import { chunksOf } from './chunks.ts'
import { basinConfig, streamConfig } from './configs.ts'
import { fuzzBytes, fuzzText } from './decoder.ts'
import {
  basinName,
  bytes,
  fencingToken,
  integer,
  record,
  sequence,
  smallInteger,
  streamName,
} from './models.ts'
import { outcomeOf, transferError, withCode } from './outcomes.ts'

const exportedAt = fc.constantFrom(new Date(Date.UTC(2030, 0, 1)), new Date(1))

const exportedStream: fc.Arbitrary<ExportedStream> = fc
  .record({
    basin: basinName,
    name: streamName,
    config: streamConfig.map((config) => mergeStreamConfig(config, {})),
    cipher: fc.constantFrom(null, 'aes-256-gcm' as const),
    createdAt: fc.option(exportedAt, { nil: undefined }),
    start: smallInteger,
    count: smallInteger,
    timestamp: integer,
    fencingToken: fc.option(fencingToken, { nil: undefined }),
  })
  .map(({ count, timestamp, ...stream }) => ({
    ...stream,
    tail: { seqNum: stream.start + count, timestamp },
  }))

const entry: fc.Arbitrary<ExportEntry> = fc.oneof(
  fc.record({ kind: fc.constant('header' as const), exportedAt }),
  fc.record({
    kind: fc.constant('basin' as const),
    name: basinName,
    config: basinConfig.map(completeBasinConfig),
  }),
  exportedStream.map((stream) => ({ kind: 'stream' as const, stream })),
  record.map(({ seqNum, timestamp, headers, body }) => {
    return { kind: 'record' as const, record: sequencedRecord(seqNum, timestamp, headers, body) }
  }),
  fc.record({ kind: fc.constant('stream-end' as const), name: streamName, records: integer }),
  fc.record({
    kind: fc.constant('end' as const),
    counts: fc.record({ basins: integer, streams: integer, records: integer }),
  }),
)

const WORDS = [
  ...'{"headwater_export":1, {"basin": {"stream": {"seq_num": {"stream_end": {"export_end":'.split(' '),
  ...'"body": "body_base64": "headers": "headers_base64": "timestamp": "config": "tail": "start":'.split(' '),
  ...'"cipher": "fencing_token": "created_at": "records": [["","trim"]] null \n'.split(' '),
]

fuzzText('a line of an export', {
  models: entry,
  encode: encodeEntry,
  decode: (input) => decodeEntry(utf8(input)),
  means: (of) => of,
  rejects: withCode('bad_json', 'invalid'),
  verify: (of) => expect(decodeEntry(utf8(encodeEntry(of))), 'the entry, encoded again').toEqual(of),
  words: WORDS,
})

/** The entries of a whole export, in order. */
const wholeExport: fc.Arbitrary<readonly ExportEntry[]> = fc
  .array(fc.tuple(exportedStream, sequence), { maxLength: 3 })
  .map((streams) => [
    { kind: 'header', exportedAt: new Date(0) },
    { kind: 'basin', name: 'my-app', config: completeBasinConfig({}) },
    ...streams.flatMap(([stream, records], i) => streamEntries({ ...stream, name: `s${i}` }, records)),
    { kind: 'end', counts: countsOf(streams.map(([, records]) => records)) },
  ])

function streamEntries(stream: ExportedStream, records: readonly SequencedRecord[]): ExportEntry[] {
  const last = records.at(-1)!
  const start = records[0]!.seqNum
  const tail = { seqNum: last.seqNum + 1, timestamp: last.timestamp }
  return [
    {
      kind: 'stream',
      stream: { ...stream, basin: 'my-app', cipher: null, fencingToken: undefined, start, tail },
    },
    ...records.map((of) => ({ kind: 'record' as const, record: of })),
    { kind: 'stream-end', name: stream.name, records: records.length },
  ]
}

function countsOf(streams: readonly (readonly unknown[])[]) {
  return { basins: 1, streams: streams.length, records: streams.flat().length }
}

function exportText(entries: readonly ExportEntry[]): string {
  return entries.map((of) => `${encodeEntry(of)}\n`).join('')
}

async function* streamed(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

fuzzBytes('the lines of an export, however they were split', {
  models: wholeExport,
  encode: (entries) => utf8(exportText(entries)),
  async decode(input) {
    const all: Line[] = []
    for await (const lines of linesOf(streamed(chunksOf(input)))) all.push(...lines)
    return all
  },
  rejects: transferError,
  verify(lines, input) {
    const found = lines.map(({ bytes: line, isComplete }) => {
      return `${Buffer.from(line).toString('latin1')}${isComplete ? '\n' : ''}`
    })
    expect(found.join('')).toBe(Buffer.from(input).toString('latin1'))
    expect(lines.map(({ number }) => number)).toEqual(lines.map((_, i) => i + 1))
  },
  words: ['\n', '\n\n', '\r\n'].map(utf8),
})

function isEnd(line: string): boolean {
  const outcome = outcomeOf(() => decodeEntry(utf8(line)))
  return 'value' in outcome && outcome.value.kind === 'end'
}

fuzzText('the end of an interrupted export', {
  models: wholeExport,
  encode: exportText,
  decode(input) {
    const progress = new ExportProgress()
    const lines = input.split('\n').slice(0, -1)
    for (const [i, line] of lines.entries()) takeLine({ number: i + 1, bytes: utf8(line) }, progress)
    return progress
  },
  means: () => expect.objectContaining({ isComplete: true }),
  rejects: transferError,
  verify(progress, input) {
    expect(progress.isComplete).toBe(isEnd(input.split('\n').at(-2) ?? ''))
    if (progress.isComplete) expect(progress.stream).toBeUndefined()
  },
  words: WORDS,
  found: [
    [
      'an end that another program has written',
      '{"headwater_export":1,"exported_at":""}\n{ "export_end":{"basins":0,"streams":0,"records":0}}\n',
    ],
    [
      'a record outside of a stream was taken for the end when another program had written it',
      '{"headwater_export":1,"exported_at":""}\n{ "seq_num":0,"timestamp":0,"body":""}\n',
    ],
  ],
})

fuzzBytes('a compressed export', {
  models: fc.array(bytes, { minLength: 1, maxLength: 3 }),
  encode: (parts) => Buffer.concat(parts.map((part) => gzipSync(part))),
  async decode(input) {
    const parts: Uint8Array[] = []
    for await (const part of gunzipped(streamed(chunksOf(input)))) parts.push(Uint8Array.from(part))
    return Buffer.concat(parts)
  },
  means: (parts) => Buffer.concat(parts),
  rejects: transferError,
  memory: { perInputByte: 1100, beside: 1_500_000 },
  isSlow: true,
})

async function imported(lines: string) {
  const clock = virtualClock()
  const random = new Prng(1)
  const hw = await open({ storage: memory(), clock, random: () => random.next(), autoCreate: false })
  const service = new Service(hw, { encryptionKey: Buffer.alloc(32, 7).toString('base64') })
  try {
    const entries = entriesOf(streamed([utf8(lines)]))
    return await importEntries(entries, service, { filter: EVERYTHING, resume: false })
  } finally {
    await clock.settle()
    expect(openCountsOf(hw).pendingAppends, 'appends that are left').toBe(0)
    await hw.close()
    expect(clock.pending, 'timers that are left').toBe(0)
  }
}

fuzzText('an import into an engine', {
  models: wholeExport,
  encode: exportText,
  decode: imported,
  means: (entries) => entries.flatMap((of) => (of.kind === 'end' ? [of.counts] : []))[0],
  rejects: transferError,
  verify({ basins, streams, records }, input) {
    expect(basins + streams + records, 'what is imported').toBeLessThanOrEqual(input.split('\n').length)
  },
  memory: { perInputByte: 20_000, beside: 32 * 1024 * 1024 },
  isSlow: true,
  words: WORDS,
})
