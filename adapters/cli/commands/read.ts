import type { SessionOf } from '../../../src/api/read-session.ts'
import type { Headwater, ReadQuery, SequencedRecord, Stream } from '../../../src/index.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import { command, flag, integerArgument, positional, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { standardOutput } from '../output.ts'
import { type PrintFormat, parseRecordFormat, RECORD_DEFINITIONS } from '../record-format.ts'
import { parseStreamName, type StreamName, streamOf } from '../stream-name.ts'
import {
  type CliTarget,
  type Connected,
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  withHeadwater,
} from '../target.ts'
import { timeArgument } from '../times.ts'

const STREAM = positional('Stream to read: BASIN/STREAM')

interface Read {
  readonly name: StreamName
  readonly format: PrintFormat
  readonly encryptionKey: string | undefined
  readonly target: CliTarget
  readonly follow: boolean
  /** The start of the read, and its bounds. */
  readonly query: (stream: Stream, signal: AbortSignal) => ReadQuery | Promise<ReadQuery>
  /** Ends after this many records that are printed. */
  readonly limit: number
}

async function run(args: Read, context: CliContext): Promise<void> {
  const { name, follow, format, encryptionKey } = args
  const output = standardOutput(context.output())
  const read = async (hw: Headwater, { signal }: Connected) => {
    const stream = streamOf(hw, name, encryptionKey)
    const query = await args.query(stream, signal)
    const options = { as: 'bytes', signal } as const
    const session = follow ? stream.follow(query, options) : stream.read(query, options)
    let left = args.limit
    for await (const records of received(session)) {
      const shown = format.isComplete ? records : records.filter(format.shows).slice(0, left)
      if (shown.length > 0) await output.write(concatBytes(shown.flatMap(format.partsOf)))
      left -= shown.length
      if (left <= 0) break
    }
  }
  let isLost = false
  await withHeadwater(args, context, read, {
    ...(follow && { resumes: Number.POSITIVE_INFINITY }),
    onRetry(failure) {
      if (!isLost) context.printError(`headwater: ${failure}; reconnecting, Ctrl+C stops`)
      isLost = true
    },
  })

  async function* received(session: SessionOf<'bytes'>): AsyncGenerator<readonly SequencedRecord[]> {
    for await (const { records } of session.batches()) {
      isLost = false
      yield records
    }
  }
}

export const READ = command({
  description: 'Print the records of a stream',
  examples: [
    'headwater read app-logs/web/1 --timestamp -15m',
    'headwater read app-logs/web/1 --timestamp yesterday --until today --json',
    `headwater read app-logs/web/1 --header level=error --format '%o %T %h %s\\n'`,
    'headwater read app-events/orders --json | jq -r .body | sort | uniq -c',
  ],
  notes: [
    'Prints each body and a line break, from the start of the stream to its tail. A start beyond the tail is',
    'an error without --clamp.',
  ],
  definitions: {
    stream: STREAM,
    'seq-num': withValue('N', 'Start at this sequence number. Default: 0'),
    timestamp: withValue('TIME', 'Start at this time'),
    'tail-offset': withValue('N', 'Start this many records before the tail'),
    limit: withValue('N', 'Stop when this many records are printed', { alias: 'n' }),
    bytes: withValue('N', 'Stop before this many metered bytes are exceeded'),
    clamp: flag('Start at the tail if the start is beyond it'),
    until: withValue('TIME', 'Stop before the first record of this time or later'),
    follow: flag('Wait for further records at the tail', { alias: 'f' }),
    ...RECORD_DEFINITIONS,
    ...KEY_DEFINITION,
    ...TARGET_DEFINITIONS,
  },
  parse(values, { clock, env }): Read {
    const { 'seq-num': seqNum, 'tail-offset': tailOffset, timestamp, bytes, until, clamp } = values
    if ([seqNum, timestamp, tailOffset].filter((start) => start !== undefined).length > 1) {
      throw new CliError(2, 'only one of `--seq-num`, `--timestamp` and `--tail-offset` can be given')
    }
    const now = clock.now()
    const start =
      timestamp !== undefined
        ? { timestamp: timeArgument(timestamp, '`--timestamp`', now) }
        : tailOffset !== undefined
          ? { tailOffset: integerArgument(tailOffset, '`--tail-offset`') }
          : { seqNum: integerArgument(seqNum ?? '0', '`--seq-num`') }
    const format = parseRecordFormat(values)
    const limit =
      values.limit === undefined ? Number.POSITIVE_INFINITY : integerArgument(values.limit, '`--limit`')
    const query = {
      ...start,
      clamp,
      // Records that are not printed do not count, and are not known before they are read.
      ...(values.limit !== undefined && (format.isComplete || limit === 0) && { count: limit }),
      ...(bytes !== undefined && { bytes: integerArgument(bytes, '`--bytes`') }),
      ...(until !== undefined && { until: timeArgument(until, '`--until`', now) }),
    }
    return {
      name: parseStreamName(values.stream, env),
      format,
      encryptionKey: encryptionKey(values, env),
      target: parseTarget(values, env),
      follow: values.follow,
      query: () => query,
      limit,
    }
  },
  run,
})

export const TAIL = command({
  description: 'Print the last records of a stream, and follow it',
  examples: [
    'headwater tail -n 100 -f app-logs/web/1',
    `headwater tail -f app-logs/web/1 --grep 'timeout|refused' -i --format '%D %s\\n'`,
    'headwater tail -n 1 app-logs/web/1 --json',
  ],
  notes: [
    '-n counts the records that are printed: with --grep or --header those that match. With -f, a',
    'lost connection to a server is restored, and reading continues after the last record.',
  ],
  definitions: {
    stream: STREAM,
    limit: withValue('N', 'Number of records', { alias: 'n', default: '10' }),
    follow: flag('Print records as they are appended', { alias: 'f' }),
    ...RECORD_DEFINITIONS,
    ...KEY_DEFINITION,
    ...TARGET_DEFINITIONS,
  },
  parse(values, { env }): Read {
    const limit = integerArgument(values.limit, '`--limit`')
    const format = parseRecordFormat(values)
    return {
      name: parseStreamName(values.stream, env),
      format,
      encryptionKey: encryptionKey(values, env),
      target: parseTarget(values, env),
      follow: values.follow,
      query: (stream, signal) =>
        format.isComplete ? { tailOffset: limit } : lastRecords(stream, limit, format.shows, signal),
      limit: Number.POSITIVE_INFINITY,
    }
  },
  run,
})

/** Records that are read at a time, going back from the tail. */
const STEP_MIN = 100
const STEP_MAX = 10_000

/**
 * Returns where to start so that a read to the tail has `count` records that are counted. Goes back from the
 * tail in steps, and keeps the positions of one step at a time.
 */
async function lastRecords(
  stream: Stream,
  count: number,
  counts: (record: SequencedRecord) => boolean,
  signal: AbortSignal,
): Promise<ReadQuery> {
  if (count === 0) return { tailOffset: 0 }
  let left = count
  let end = Number.POSITIVE_INFINITY
  for (let step = Math.min(Math.max(count, STEP_MIN), STEP_MAX); ; step = Math.min(4 * step, STEP_MAX)) {
    const isFirst = end === Number.POSITIVE_INFINITY
    const start = Math.max(0, end - step)
    const query = isFirst ? { tailOffset: step } : { seqNum: start, count: end - start, clamp: true }
    const positions: number[] = []
    let first: number | undefined
    for await (const { records } of stream.read(query, { as: 'bytes', signal }).batches()) {
      first ??= records[0]?.seqNum
      for (const record of records) if (record.seqNum < end && counts(record)) positions.push(record.seqNum)
    }
    if (positions.length >= left) return { seqNum: positions.at(-left)!, clamp: true }
    left -= positions.length
    // The records before were trimmed, or there are none.
    if (first === undefined || first === 0 || (!isFirst && first > start)) return { seqNum: 0, clamp: true }
    end = first
  }
}
