import type { BasinInfo, Headwater, StreamInfo } from '../../../src/index.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../src/model/names.ts'
import { timeText } from '../../../src/wire/json.ts'
import { BASIN_INFO, STREAM_INFO } from '../../../src/wire/json-resources.ts'
import { command, flag, integerArgument, positional, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable } from '../errors.ts'
import { table } from '../output.ts'
import { bytesText } from '../progress.ts'
import {
  allStreamDetails,
  appendRate,
  basinDetails,
  type Details,
  ifKnown,
  streamDetails,
} from '../resource-details.ts'
import { nameText, parseStreamName, splitName, streamOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { retentionPeriod } from '../times.ts'

/** Basins or streams whose details are requested at a time. */
const DETAILS_MAX = 8

/** Lists basins or streams: one name a line. */
export const LS = command({
  description: 'List basins, or the streams of a basin',
  examples: ['headwater ls', 'headwater ls app-logs', 'headwater ls -l app-logs/web/'],
  notes: [
    'What the server does not know or the token does not permit is -. `headwater info` tells more of a stream.',
  ],
  definitions: {
    name: positional('BASIN, or BASIN/PREFIX. Default: list basins', { required: false }),
    prefix: withValue('PREFIX', 'Only names with this prefix'),
    limit: withValue('N', 'At most this many names', { alias: 'n' }),
    'start-after': withValue('NAME', 'Only names after this one'),
    long: flag('Also print sizes and last writes', { alias: 'l' }),
    json: flag('Print each basin or stream as a JSON object on a line'),
    ...TARGET_DEFINITIONS,
  },
  parse(values, { env }) {
    const { name, prefix, long, json } = values
    const { basin, rest } = name === undefined ? {} : splitName(name, env)
    if (rest !== undefined && prefix !== undefined) {
      throw new CliError(2, '`--prefix` cannot be combined with BASIN/PREFIX')
    }
    if (long && json) throw new CliError(2, '`--long` cannot be combined with `--json`')
    const start = rest ?? prefix ?? ''
    const problem =
      basin === undefined ? basinPrefixProblem(start, 'prefix') : streamPrefixProblem(start, 'prefix')
    if (problem !== undefined) throw new CliError(2, `\`--prefix\`: ${problem}`)
    const limit =
      values.limit === undefined ? Number.POSITIVE_INFINITY : integerArgument(values.limit, '`--limit`')
    const query = { prefix: start, startAfter: values['start-after'] ?? '' }
    return { basin, query, limit, long, json, target: parseTarget(values, env) }
  },
  run: (args, context) =>
    withHeadwater(args, context, async (hw) => {
      const { basin, query, limit, long, json } = args
      const items: AsyncIterable<BasinInfo | StreamInfo> =
        basin === undefined ? hw.listAllBasins(query) : hw.basin(basin).listAllStreams(query)
      if (long) return listLong(hw, basin, firstOf(items, limit), context)
      for await (const item of firstOf(items, limit)) {
        if (json) context.print('state' in item ? BASIN_INFO.text(item) : STREAM_INFO.text(item))
        else context.print(printable(item.name))
      }
    }),
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
  print(headings(basin === undefined))
  for await (const item of items) {
    const now = clock.now()
    const details =
      basin === undefined
        ? basinDetails(hw.basin(item.name), now)
        : streamDetails(streamOf(hw, { basin, stream: item.name }))
    const line = details.then((known) => longLine(item, known))
    // Reported when it is awaited.
    line.catch(() => {})
    waiting.push(line)
    if (waiting.length >= DETAILS_MAX) print(await waiting.shift()!)
  }
  for (const line of waiting) print(await line)
}

/** The widths of the columns before the name. */
const TIME_WIDTH = 24
const STATE_WIDTH = 11
const NUMBER_WIDTH = 11

function headings(isOfBasins: boolean): string {
  const number = isOfBasins ? 'BYTES' : 'RECORDS'
  const last = isOfBasins ? 'RETENTION' : 'LAST WRITE'
  return longRow(['CREATED', isOfBasins ? 'STATE' : 'CIPHER', number, last, 'NAME'])
}

function longLine(item: BasinInfo | StreamInfo, { records, bytes, retention, lastWrite }: Details): string {
  const isBasin = 'state' in item
  const number = isBasin ? bytes !== undefined && bytesText(bytes) : records?.toLocaleString('en-US')
  const last = isBasin
    ? retention && retentionPeriod(retention)
    : lastWrite !== undefined && timeText(lastWrite)
  return longRow([timeText(item.createdAt), stateOf(item), number || '-', last || '-', printable(item.name)])
}

function longRow([created, state, number, last, name]: readonly [string, string, string, string, string]) {
  return [
    created.padEnd(TIME_WIDTH),
    state.padEnd(STATE_WIDTH),
    number.padStart(NUMBER_WIDTH),
    last.padEnd(TIME_WIDTH),
    name,
  ].join('  ')
}

function stateOf(item: BasinInfo | StreamInfo): string {
  if ('state' in item) return item.state
  return item.deletedAt === null ? (item.cipher ?? 'plain') : 'deleting'
}

/** Prints what is known about a stream. What is not known is left out. */
export const INFO = command({
  description: 'Print the records, size, retention and last write of a stream',
  examples: ['headwater info app-logs/web/1', 'headwater info app-logs/web/1 --json'],
  notes: [
    'Bytes are metered bytes: bodies, headers and 8 bytes a record. The rate is that of the last minute, by',
    'the timestamps of the records. What the server does not know or the token does not permit is left out,',
    'and so is what needs the key of an encrypted stream.',
  ],
  definitions: {
    stream: positional('BASIN/STREAM'),
    json: flag('Print JSON'),
    ...TARGET_DEFINITIONS,
  },
  parse: (values, { env }) => ({
    name: parseStreamName(values.stream, env),
    json: values.json,
    target: parseTarget(values, env),
  }),
  run: ({ name, json, target }, context) =>
    withHeadwater({ target }, context, async (hw) => {
      const stream = streamOf(hw, name)
      // Reports a missing stream.
      await stream.checkTail()
      const now = context.clock.now()
      const [details, rate, listed] = await Promise.all([
        allStreamDetails(stream, now),
        appendRate(stream, now),
        ifKnown(hw.basin(name.basin).listStreams({ prefix: name.stream, limit: 1 })),
      ])
      const info = listed?.items.find((item) => item.name === name.stream)
      if (json) context.print(JSON.stringify(infoForm(nameText(name), { ...details, rate }, info)))
      else for (const line of table(infoRows(nameText(name), { ...details, rate }, info))) context.print(line)
    }),
})

interface RatedDetails extends Details {
  /** Records per second. */
  readonly rate: number | undefined
}

function infoForm(
  name: string,
  { retention, lastWrite, ...details }: RatedDetails,
  info: StreamInfo | undefined,
) {
  return {
    name,
    records: details.records,
    bytes: details.bytes,
    first_seq_num: details.firstSeqNum,
    next_seq_num: details.nextSeqNum,
    last_write: lastWrite,
    records_per_second: details.rate,
    retention_secs:
      retention === undefined ? undefined : retention === 'infinite' ? null : retention.ageSeconds,
    created_at: info === undefined ? undefined : timeText(info.createdAt),
    cipher: info?.cipher,
  }
}

/** Formats a number of bytes exactly, and a larger one also in its unit. */
function bytesRow(bytes: number): string {
  return `${bytes.toLocaleString('en-US')}${bytes < 1024 ? '' : ` (${bytesText(bytes)})`}`
}

function rateText(rate: number): string {
  return rate.toLocaleString('en-US', { maximumFractionDigits: rate < 10 ? 2 : 0 })
}

function infoRows(name: string, details: RatedDetails, info: StreamInfo | undefined): string[][] {
  const { records, bytes, firstSeqNum, nextSeqNum, lastWrite, rate, retention } = details
  const rows = [
    ['stream', name],
    ['records', records?.toLocaleString('en-US')],
    ['bytes', bytes === undefined ? undefined : bytesRow(bytes)],
    ['first sequence number', firstSeqNum],
    ['next sequence number', nextSeqNum],
    ['last write', lastWrite === undefined ? undefined : timeText(lastWrite)],
    ['rate', rate === undefined ? undefined : `${rateText(rate)} records/s in the last minute`],
    ['retention', retention === undefined ? undefined : retentionPeriod(retention)],
    ['created at', info === undefined ? undefined : timeText(info.createdAt)],
    ['cipher', info?.cipher ?? undefined],
  ] as const
  return rows.flatMap(([label, value]) => (value === undefined ? [] : [[label, String(value)]]))
}
