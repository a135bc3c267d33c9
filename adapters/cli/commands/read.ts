import { Option } from '@commander-js/extra-typings'
import type { Headwater, ReadQuery, SequencedRecord, Stream } from '../../../src/index.ts'
import { concatBytes } from '../../../src/model/bytes.ts'
import type { CliContext } from '../context.ts'
import { LIMIT_FLAGS, recordsCommand } from '../options.ts'
import { standardOutput } from '../output.ts'
import { type PrintFormat, printFormat, printOptions } from '../record-format.ts'
import { type TargetOptions, withHeadwater } from '../target.ts'
import {
  encryptionKey,
  integer,
  type KeyOptions,
  type StreamName,
  streamName,
  streamOf,
  time,
} from '../values.ts'

const STREAM = 'Stream to read: BASIN/STREAM'

export const readCommand = (context: CliContext) =>
  printOptions(
    recordsCommand('read', {
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
    })
      .argument('<STREAM>', STREAM, streamName(context))
      .addOption(
        new Option('--seq-num <N>', 'Start at this sequence number. Default: 0')
          .conflicts(['timestamp', 'tailOffset'])
          .argParser(integer()),
      )
      .addOption(
        new Option('--timestamp <TIME>', 'Start at this time')
          .conflicts('tailOffset')
          .argParser(time(context)),
      )
      .option('--tail-offset <N>', 'Start this many records before the tail', integer())
      .option(LIMIT_FLAGS, 'Stop when this many records are printed', integer())
      .option('--bytes <N>', 'Stop before this many metered bytes are exceeded', integer())
      .option('--clamp', 'Start at the tail if the start is beyond it')
      .option('--until <TIME>', 'Stop before the first record of this time or later', time(context))
      .option('-f, --follow', 'Wait for further records at the tail'),
  ).action((name, options) => {
    const { seqNum, timestamp, tailOffset, limit, bytes, until, clamp = false } = options
    const format = printFormat(options)
    // Records that are not printed do not count, and are not known before they are read.
    const count = format.isComplete || limit === 0 ? limit : undefined
    const start = timestamp === undefined && tailOffset === undefined ? { seqNum: seqNum ?? 0 } : {}
    const query = { ...start, timestamp, tailOffset, clamp, count, bytes, until }
    return print(name, format, { ...options, limit: limit ?? Infinity }, context, async () => query)
  })

export const tailCommand = (context: CliContext) =>
  printOptions(
    recordsCommand('tail', {
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
    })
      .argument('<STREAM>', STREAM, streamName(context))
      .option(LIMIT_FLAGS, 'Number of records', integer(), 10)
      .option('-f, --follow', 'Print records as they are appended'),
  ).action((name, options) => {
    const format = printFormat(options)
    const { limit } = options
    return print(name, format, { ...options, limit: Infinity }, context, async (stream, signal) =>
      format.isComplete ? { tailOffset: limit } : lastRecords(stream, limit, format.shows, signal),
    )
  })

interface ReadOptions extends TargetOptions, KeyOptions {
  readonly follow?: boolean | undefined
  /** Ends after this many records that are printed. */
  readonly limit: number
}

/** @param queryOf Returns the start of the read, and its bounds. */
async function print(
  name: StreamName,
  format: PrintFormat,
  options: ReadOptions,
  context: CliContext,
  queryOf: (stream: Stream, signal: AbortSignal) => Promise<ReadQuery>,
): Promise<void> {
  const { follow = false, limit } = options
  const key = encryptionKey(options, context)
  const write = standardOutput(context.output())
  let isLost = false
  const read = async (hw: Headwater) => {
    const signal = context.stopSignal()
    const stream = streamOf(hw, name, key)
    const query = await queryOf(stream, signal)
    const as = { as: 'bytes', signal } as const
    let left = limit
    const session = follow ? stream.follow(query, as) : stream.read(query, as)
    for await (const { records } of session.batches()) {
      isLost = false
      const shown = format.isComplete ? records : records.filter(format.shows).slice(0, left)
      if (shown.length > 0) await write(concatBytes(shown.flatMap(format.partsOf)))
      left -= shown.length
      if (left <= 0) break
    }
  }
  await withHeadwater(options, context, read, {
    ...(follow && { resumes: Number.POSITIVE_INFINITY }),
    onRetry(failure) {
      if (!isLost) context.printError(`headwater: ${failure}; reconnecting, Ctrl+C stops`)
      isLost = true
    },
  })
}

/** Records that are read first, going back from the tail. */
const STEP = 100

/**
 * Returns where to start so that a read to the tail has `count` records that are counted: goes back from the
 * tail four times as far until there are as many, or nothing is before them.
 */
async function lastRecords(
  stream: Stream,
  count: number,
  counts: (record: SequencedRecord) => boolean,
  signal: AbortSignal,
): Promise<ReadQuery> {
  if (count === 0) return { tailOffset: 0 }
  for (let tailOffset = Math.max(count, STEP); ; tailOffset *= 4) {
    let read = 0
    const positions: number[] = []
    for await (const { records } of stream.read({ tailOffset }, { as: 'bytes', signal }).batches()) {
      read += records.length
      for (const record of records) if (counts(record)) positions.push(record.seqNum)
    }
    if (positions.length >= count) return { seqNum: positions.at(-count)!, clamp: true }
    // The records before were trimmed, or there are none.
    if (read < tailOffset) return { seqNum: positions[0] ?? 0, clamp: true }
  }
}
