import fc from 'fast-check'
import {
  type ExportEntry,
  type ExportedStream,
  encodeEntry,
} from '../../../adapters/transfer/export-entry.ts'
import { basinConfig as completeBasinConfig, mergeStreamConfig } from '../../../src/core/config.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { basinConfig, streamConfig } from './configs.ts'
import { basinName, fencingToken, integer, record, sequence, smallInteger, streamName } from './models.ts'

/** Lines of an export. */

const time = fc.constantFrom('2030-01-01T00:00:00Z', '1970-01-01T00:00:00.001Z')
const filter = fc.constantFrom('*', 'a*', 'a')

const streamEntry: fc.Arbitrary<Extract<ExportEntry, { kind: 'stream' }>> = fc
  .record({
    basin: basinName,
    name: streamName,
    config: streamConfig.map((config) => mergeStreamConfig(config, {})),
    cipher: fc.constantFrom(null, 'aes-256-gcm' as const),
    createdAt: fc.option(time, { nil: undefined }),
    start: smallInteger,
    count: smallInteger,
    timestamp: integer,
    fencingToken: fc.option(fencingToken, { nil: undefined }),
  })
  .map(({ count, timestamp, ...stream }) => ({
    kind: 'stream',
    stream: { ...stream, tail: { seqNum: stream.start + count, timestamp } },
  }))

export const entry: fc.Arbitrary<ExportEntry> = fc.oneof(
  fc.record({ kind: fc.constant('header' as const), exportedAt: time, basins: filter, streams: filter }),
  fc.record({
    kind: fc.constant('basin' as const),
    name: basinName,
    config: basinConfig.map(completeBasinConfig),
  }),
  streamEntry,
  record.map((of) => ({ kind: 'record' as const, record: of })),
  fc.record({ kind: fc.constant('stream-end' as const), name: streamName, records: integer }),
  fc.record({
    kind: fc.constant('end' as const),
    counts: fc.record({ basins: integer, streams: integer, records: integer }),
  }),
)

/** The lines of a whole export, in order. */
export const wholeExport: fc.Arbitrary<readonly ExportEntry[]> = fc
  .array(fc.tuple(streamEntry, sequence), { maxLength: 3 })
  .map((streams) => [
    { kind: 'header', exportedAt: '2030-01-01T00:00:00Z', basins: '*', streams: '*' },
    { kind: 'basin', name: 'my-app', config: completeBasinConfig({}) },
    ...streams.flatMap(([{ stream }, records], i) => streamLines({ ...stream, name: `s${i}` }, records)),
    {
      kind: 'end',
      counts: {
        basins: 1,
        streams: streams.length,
        records: streams.reduce((sum, [, records]) => sum + records.length, 0),
      },
    },
  ])

function streamLines(stream: ExportedStream, records: readonly SequencedRecord[]): ExportEntry[] {
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

export function exportText(entries: readonly ExportEntry[]): string {
  return entries.map((of) => `${encodeEntry(of)}\n`).join('')
}

export const EXPORT_WORDS = [
  ...['{"headwater_export":1,', '{"basin":', '{"stream":', '{"seq_num":', '{"stream_end":', '{"export_end":'],
  ...['"body":', '"body_base64":', '"headers":', '"headers_base64":', '"timestamp":', '"config":', '"tail":'],
  ...[
    '"start":',
    '"cipher":',
    '"fencing_token":',
    '"created_at":',
    '"records":',
    '[["","trim"]]',
    'null',
    '\n',
  ],
]
