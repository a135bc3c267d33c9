import { Option } from '@commander-js/extra-typings'
import {
  type Basin,
  type BasinInfo,
  type Headwater,
  HeadwaterError,
  type Metric,
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

/** Prints the items in order, with details. */
async function listLong(
  hw: Headwater,
  basin: string | undefined,
  items: AsyncIterable<BasinInfo | StreamInfo>,
  { clock, print }: CliContext,
): Promise<void> {
  let waiting: Promise<string>[] = []
  const printWaiting = async () => {
    for (const line of await Promise.all(waiting)) print(line)
    waiting = []
  }
  if (basin === undefined) print(longLine('CREATED', 'STATE', 'BYTES', 'RETENTION', 'NAME'))
  else print(longLine('CREATED', 'CIPHER', 'RECORDS', 'LAST WRITE', 'NAME'))
  for await (const item of items) {
    const line =
      'state' in item
        ? basinLine(item, hw.basin(item.name), clock.now())
        : streamLine(item, streamOf(hw, { basin: basin!, stream: item.name }))
    waiting.push(line)
    if (waiting.length === DETAILS_MAX) await printWaiting()
  }
  await printWaiting()
}

async function basinLine({ name, state, createdAt }: BasinInfo, basin: Basin, now: number): Promise<string> {
  const [config, bytes] = await Promise.all([ifKnown(basin.config()), storedBytes(basin, now)])
  const retention = config?.defaultStreamConfig.retentionPolicy
  return longLine(
    timeText(createdAt),
    state,
    shown(bytes, bytesText),
    shown(retention, retentionPeriod),
    name,
  )
}

async function streamLine(
  { name, createdAt, deletedAt, cipher }: StreamInfo,
  stream: Stream,
): Promise<string> {
  const { records, lastWrite } = await streamDetails(stream)
  const state = deletedAt === null ? (cipher ?? 'plain') : 'deleting'
  return longLine(timeText(createdAt), state, shown(records, countOf), shown(lastWrite, timeText), name)
}

function longLine(created: string, state: string, number: string, last: string, name: string): string {
  const columns = [
    created.padEnd(24),
    state.padEnd(11),
    number.padStart(11),
    last.padEnd(24),
    printable(name),
  ]
  return columns.join('  ')
}

/** Returns the text of a value, or what stands for one that is not known. */
function shown<Value>(value: Value | undefined, textOf: (value: Value) => string): string {
  return value === undefined ? '-' : textOf(value)
}

function countOf(count: number): string {
  return count.toLocaleString('en-US')
}

/**
 * Resolves to what a request for the first record tells, which has the tail, too: positions, the number of
 * records between them (commands included), and the time of the last one in milliseconds. A member that is
 * not known is undefined.
 */
export async function streamDetails(stream: Stream) {
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

/** Resolves to undefined if the caller cannot know the value. Rejects if the request may succeed later. */
async function ifKnown<Value>(value: Promise<Value>): Promise<Value | undefined> {
  try {
    return await value
  } catch (error) {
    if (HeadwaterError.is(error) && !error.retryable) return undefined
    throw error
  }
}

/** Resolves to the metered bytes that a basin or a stream stores, if they are known. */
async function storedBytes(resource: Basin | Stream, now: number): Promise<number | undefined> {
  const end = endOfUsage(now) * 1000
  const metrics = await ifKnown<readonly Metric[]>(
    resource.metrics({ set: 'storage', start: end - 60_000, end }),
  )
  const gauge = metrics?.find((metric) => metric.kind === 'gauge')
  return gauge?.values.at(-1)?.[1]
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
        const [details, config, bytes, listed] = await Promise.all([
          streamDetails(stream),
          ifKnown(stream.config()),
          storedBytes(stream, context.clock.now()),
          ifKnown(hw.basin(name.basin).listStreams({ prefix: name.stream, limit: 1 })),
        ])
        const { records, firstSeqNum, nextSeqNum, lastWrite } = details
        const info = listed?.items.find((item) => item.name === name.stream)
        const retention = config?.retentionPolicy
        if (options.json) {
          // Members that are undefined are left out.
          const form = {
            name: nameText(name),
            records,
            bytes,
            first_seq_num: firstSeqNum,
            next_seq_num: nextSeqNum,
            last_write: lastWrite,
            retention_secs: retention === 'infinite' ? null : retention?.ageSeconds,
            created_at: info && timeText(info.createdAt),
            cipher: info?.cipher,
          }
          return context.print(JSON.stringify(form))
        }
        const inUnit = bytes === undefined || bytes < 1024 ? '' : ` (${bytesText(bytes)})`
        const rows = [
          ['stream', nameText(name)],
          ['records', shown(records, countOf)],
          ['bytes', shown(bytes, countOf) + inUnit],
          ['first sequence number', shown(firstSeqNum, String)],
          ['next sequence number', shown(nextSeqNum, String)],
          ['last write', shown(lastWrite, timeText)],
          ['retention', shown(retention, retentionPeriod)],
          ['created at', shown(info?.createdAt, timeText)],
          ['cipher', info?.cipher ?? '-'],
        ]
        const known = rows.filter(([, text]) => text !== '-')
        printTable(known, context)
      }),
    )
