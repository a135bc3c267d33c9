import { Option } from '@commander-js/extra-typings'
import {
  type Basin,
  type BasinInfo,
  type Headwater,
  HeadwaterError,
  type Metric,
  type RetentionPolicy,
  type Stream,
  type StreamInfo,
} from '../../../src/index.ts'
import { endOfUsage } from '../../../src/model/metrics.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../src/model/names.ts'
import { timeText } from '../../../src/wire/json.ts'
import { BASIN_INFO, STREAM_INFO } from '../../../src/wire/json-resources.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable } from '../errors.ts'
import { LIMIT_FLAGS, targetCommand } from '../options.ts'
import { bytesText, printTable } from '../output.ts'
import { withHeadwater } from '../target.ts'
import { integer, nameText, retentionPeriod, splitName, streamName, streamOf } from '../values.ts'

/** Basins or streams whose details are requested at a time. */
const DETAILS_MAX = 8

export const lsCommand = (context: CliContext) =>
  targetCommand('ls', {
    description: 'List basins, or the streams of a basin',
    examples: ['headwater ls', 'headwater ls app-logs', 'headwater ls -l app-logs/web/'],
    notes: [
      'What the server does not know or the token does not permit is -. `headwater info` tells more of a stream.',
    ],
  })
    .argument('[NAME]', 'BASIN, or BASIN/PREFIX. Default: list basins', splitName(context))
    .option('--prefix <PREFIX>', 'Only names with this prefix')
    .option(LIMIT_FLAGS, 'At most this many names', integer())
    .option('--start-after <NAME>', 'Only names after this one')
    .addOption(new Option('-l, --long', 'Also print sizes and last writes').conflicts('json'))
    .option('--json', 'Print each basin or stream as a JSON object on a line')
    .action((name, options) => {
      const { prefix, limit = Infinity, startAfter = '', long, json } = options
      const { basin, rest } = name ?? {}
      if (rest !== undefined && prefix !== undefined) {
        throw new CliError(2, '`--prefix` cannot be combined with BASIN/PREFIX')
      }
      const query = { prefix: rest ?? prefix ?? '', startAfter }
      const prefixProblem = basin === undefined ? basinPrefixProblem : streamPrefixProblem
      const problem = prefixProblem(query.prefix, 'prefix')
      if (problem !== undefined) throw new CliError(2, `\`--prefix\`: ${problem}`)
      return withHeadwater(options, context, async (hw) => {
        const all: AsyncIterable<BasinInfo | StreamInfo> =
          basin === undefined ? hw.listAllBasins(query) : hw.basin(basin).listAllStreams(query)
        const items = firstOf(all, limit)
        if (long) return listLong(hw, basin, items, context)
        for await (const item of items) {
          if (json) context.print('state' in item ? BASIN_INFO.text(item) : STREAM_INFO.text(item))
          else context.print(printable(item.name))
        }
      })
    })

async function* firstOf<Item>(items: AsyncIterable<Item>, limit: number): AsyncGenerator<Item> {
  let left = limit
  if (left === 0) return
  for await (const item of items) {
    yield item
    left--
    if (left === 0) return
  }
}

/** Prints the items in order, as soon as the details of those before them are known. */
async function listLong(
  hw: Headwater,
  basin: string | undefined,
  items: AsyncIterable<BasinInfo | StreamInfo>,
  { clock, print }: CliContext,
): Promise<void> {
  const waiting: Promise<string>[] = []
  const [state, number, last] =
    basin === undefined ? ['STATE', 'BYTES', 'RETENTION'] : ['CIPHER', 'RECORDS', 'LAST WRITE']
  print(longLine('CREATED', state, number, last, 'NAME'))
  for await (const item of items) {
    const line =
      'state' in item
        ? basinLine(item, hw.basin(item.name), clock.now())
        : streamLine(item, streamOf(hw, { basin: basin!, stream: item.name }))
    // Reported when it is awaited.
    line.catch(() => {})
    waiting.push(line)
    if (waiting.length >= DETAILS_MAX) print(await waiting.shift()!)
  }
  for (const line of waiting) print(await line)
}

async function basinLine({ name, state, createdAt }: BasinInfo, basin: Basin, now: number): Promise<string> {
  const [config, metrics] = await Promise.all([
    ifKnown(basin.config()),
    ifKnown(basin.metrics(storageAt(now))),
  ])
  const bytes = lastValue(metrics)
  const retention = config?.defaultStreamConfig.retentionPolicy
  return longLine(
    timeText(createdAt),
    state,
    bytes === undefined ? '-' : bytesText(bytes),
    retention === undefined ? '-' : retentionPeriod(retention),
    printable(name),
  )
}

async function streamLine(info: StreamInfo, stream: Stream): Promise<string> {
  const { records, lastWrite } = await streamDetails(stream)
  return longLine(
    timeText(info.createdAt),
    info.deletedAt === null ? (info.cipher ?? 'plain') : 'deleting',
    records?.toLocaleString('en-US') ?? '-',
    lastWrite === undefined ? '-' : timeText(lastWrite),
    printable(info.name),
  )
}

function longLine(created: string, state: string, number: string, last: string, name: string): string {
  return [created.padEnd(24), state.padEnd(11), number.padStart(11), last.padEnd(24), name].join('  ')
}

/** The known facts about a stream. A member that is not known is undefined. */
interface StreamDetails {
  readonly firstSeqNum: number | undefined
  readonly nextSeqNum: number | undefined
  /** Records between both, commands included. */
  readonly records: number | undefined
  /** The timestamp of the last record, in milliseconds since the Unix epoch. */
  readonly lastWrite: number | undefined
}

/** Resolves to what a request for the first record tells: it has the tail, too. */
export async function streamDetails(stream: Stream): Promise<StreamDetails> {
  const first = await ifKnown(stream.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes' }))
  const tail = first?.tail ?? (await ifKnown(stream.checkTail()))
  const nextSeqNum = tail?.seqNum
  const firstSeqNum = first === undefined ? undefined : (first.records[0]?.seqNum ?? nextSeqNum)
  const isKnown = firstSeqNum !== undefined && nextSeqNum !== undefined
  return {
    firstSeqNum,
    nextSeqNum,
    records: isKnown ? nextSeqNum - firstSeqNum : undefined,
    lastWrite: tail === undefined || tail.seqNum === 0 ? undefined : tail.timestamp,
  }
}

/** Codes of errors that say that the caller cannot know something, and not that a request failed. */
const UNKNOWN: ReadonlySet<string> = new Set([
  'permission_denied',
  'unsupported',
  'invalid',
  // Other servers have no usage of basins whose names are short.
  'bad_path',
  'not_found',
  'encryption_key_invalid',
  'decryption_failed',
  'basin_not_found',
  'basin_deletion_pending',
  'stream_not_found',
  'stream_deletion_pending',
  'stream_deleted',
])

/** Resolves to undefined if the caller cannot know the value. */
async function ifKnown<Value>(value: Promise<Value>): Promise<Value | undefined> {
  try {
    return await value
  } catch (error) {
    if (HeadwaterError.is(error) && UNKNOWN.has(error.code)) return undefined
    throw error
  }
}

function storageAt(now: number) {
  const end = endOfUsage(now) * 1000
  return { set: 'storage', start: end - 60_000, end } as const
}

function lastValue(metrics: readonly Metric[] | undefined): number | undefined {
  const gauge = metrics?.find(({ kind }) => kind === 'gauge')
  return gauge?.kind === 'gauge' ? gauge.values.at(-1)?.[1] : undefined
}

export const infoCommand = (context: CliContext) =>
  targetCommand('info', {
    description: 'Print the records, size, retention and last write of a stream',
    examples: ['headwater info app-logs/web/1', 'headwater info app-logs/web/1 --json'],
    notes: [
      'Bytes are metered bytes: bodies, headers and 8 bytes a record. What the server does not know or the token',
      'does not permit is left out, and so is what needs the key of an encrypted stream.',
    ],
  })
    .argument('<STREAM>', 'BASIN/STREAM', streamName(context))
    .option('--json', 'Print JSON')
    .action((name, options) =>
      withHeadwater(options, context, async (hw) => {
        const stream = streamOf(hw, name)
        // Reports a missing stream.
        await stream.checkTail()
        const [details, config, metrics, listed] = await Promise.all([
          streamDetails(stream),
          ifKnown(stream.config()),
          ifKnown(stream.metrics(storageAt(context.clock.now()))),
          ifKnown(hw.basin(name.basin).listStreams({ prefix: name.stream, limit: 1 })),
        ])
        const info = listed?.items.find((item) => item.name === name.stream)
        const retention = config?.retentionPolicy
        const facts = factsOf(nameText(name), details, lastValue(metrics), retention, info)
        if (options.json) {
          // Members that are undefined are left out.
          const form = Object.fromEntries(facts.map(([, member, value]) => [member, value]))
          return context.print(JSON.stringify(form))
        }
        const rows = facts.map(([label, , value, text = value]) => [label, text])
        printTable(
          rows.filter((row) => row[1] != null).map((row) => row.map(String)),
          context,
        )
      }),
    )

/** A label, a member of the JSON, its value, and the text for people if that is another one. */
type Fact = readonly [label: string, member: string, value: unknown, text?: string | undefined]

function factsOf(
  name: string,
  { records, firstSeqNum, nextSeqNum, lastWrite }: StreamDetails,
  bytes: number | undefined,
  retention: RetentionPolicy | undefined,
  info: StreamInfo | undefined,
): Fact[] {
  const inUnit = bytes === undefined || bytes < 1024 ? '' : ` (${bytesText(bytes)})`
  return [
    ['stream', 'name', name],
    ['records', 'records', records, records?.toLocaleString('en-US')],
    ['bytes', 'bytes', bytes, bytes === undefined ? undefined : `${bytes.toLocaleString('en-US')}${inUnit}`],
    ['first sequence number', 'first_seq_num', firstSeqNum],
    ['next sequence number', 'next_seq_num', nextSeqNum],
    ['last write', 'last_write', lastWrite, lastWrite === undefined ? undefined : timeText(lastWrite)],
    [
      'retention',
      'retention_secs',
      retention === 'infinite' ? null : retention?.ageSeconds,
      retention && retentionPeriod(retention),
    ],
    ['created at', 'created_at', info && timeText(info.createdAt)],
    ['cipher', 'cipher', info?.cipher],
  ]
}
