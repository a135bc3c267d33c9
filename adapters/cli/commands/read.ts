import type { SessionOf } from '../../../src/api/read-session.ts'
import type { Headwater, ReadQuery, SequencedRecord } from '../../../src/index.ts'
import { integerArgument, parseArguments, timeArgument } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { printRecords, RECORD_OUTPUT_DEFINITIONS, RECORD_OUTPUT_NOTES } from '../print-records.ts'
import { NAME_NOTES, parseStreamName, streamOf } from '../stream-name.ts'
import {
  type Connected,
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  TARGET_NOTES,
  type TargetValues,
  withHeadwater,
} from '../target.ts'

const READ_DEFINITIONS = {
  stream: { type: 'positional', required: true, description: 'Stream to read: BASIN/STREAM' },
  'seq-num': { type: 'string', description: 'Start at this sequence number. Default: 0' },
  timestamp: { type: 'string', description: 'Start at this time' },
  'tail-offset': { type: 'string', description: 'Start this many records before the tail' },
  count: { type: 'string', description: 'Stop after this many records' },
  bytes: { type: 'string', description: 'Stop before this many metered bytes are exceeded' },
  until: { type: 'string', description: 'Stop before the first record of this time or later' },
  follow: {
    type: 'boolean',
    alias: 'f',
    default: false,
    description: 'Wait for further records at the tail',
  },
  ...RECORD_OUTPUT_DEFINITIONS,
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

const TAIL_DEFINITIONS = {
  stream: { type: 'positional', required: true, description: 'Stream to read: BASIN/STREAM' },
  lines: { type: 'string', alias: 'n', default: '10', description: 'Number of records' },
  follow: { type: 'boolean', alias: 'f', default: false, description: 'Print records as they are appended' },
  ...RECORD_OUTPUT_DEFINITIONS,
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

interface Values extends TargetValues {
  readonly stream: string
  readonly json: boolean
  readonly base64: boolean
  readonly 'encryption-key'?: string | undefined
}

function parseRead(args: readonly string[], context: CliContext) {
  const parsed = parseArguments(args, READ_DEFINITIONS, 'read')
  const { 'seq-num': seqNum, 'tail-offset': tailOffset, timestamp, count, bytes, until, follow } = parsed
  if ([seqNum, timestamp, tailOffset].filter((start) => start !== undefined).length > 1) {
    throw new CliError(2, 'only one of `--seq-num`, `--timestamp` and `--tail-offset` can be given')
  }
  const now = context.clock.now()
  const start =
    timestamp !== undefined
      ? { timestamp: timeArgument(timestamp, '`--timestamp`', now) }
      : tailOffset !== undefined
        ? { tailOffset: integerArgument(tailOffset, '`--tail-offset`') }
        : { seqNum: integerArgument(seqNum ?? '0', '`--seq-num`') }
  const bounds = {
    ...(count !== undefined && { count: integerArgument(count, '`--count`') }),
    ...(bytes !== undefined && { bytes: integerArgument(bytes, '`--bytes`') }),
    ...(until !== undefined && { until: timeArgument(until, '`--until`', now) }),
  }
  return { ...commonArguments(parsed, context), query: { ...start, ...bounds }, follow }
}

function parseTail(args: readonly string[], context: CliContext) {
  const parsed = parseArguments(args, TAIL_DEFINITIONS, 'tail')
  const { lines, follow } = parsed
  return {
    ...commonArguments(parsed, context),
    query: { tailOffset: integerArgument(lines, '`--lines`') },
    follow,
  }
}

function commonArguments(parsed: Values, { env }: CliContext) {
  const { stream, json, base64, 'encryption-key': key } = parsed
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  return {
    name: parseStreamName(stream, env),
    json,
    base64,
    encryptionKey: encryptionKey(key, env),
    target: parseTarget(parsed, env),
  }
}

async function run(
  args: ReturnType<typeof commonArguments> & { readonly query: ReadQuery; readonly follow: boolean },
  context: CliContext,
): Promise<void> {
  const { name, query, follow, encryptionKey } = args
  const read = async (hw: Headwater, { signal }: Connected) => {
    const stream = streamOf(hw, name, encryptionKey)
    const options = { as: 'bytes', signal } as const
    const session = follow ? stream.follow(query, options) : stream.read(query, options)
    await printRecords(received(session), args, context)
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
  name: 'read',
  description: 'Print the records of a stream',
  notes: [
    'Prints each body and a line break, from the start of the stream to its tail. A start beyond the tail is',
    'an error. Times are milliseconds, RFC 3339 or a duration before now, such as 15m.',
    ...RECORD_OUTPUT_NOTES,
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: READ_DEFINITIONS,
  parse: parseRead,
  run,
})

export const TAIL = command({
  name: 'tail',
  description: 'Print the last records of a stream, and follow it',
  notes: [
    'Example: headwater tail -n 100 -f app-logs/web/1',
    'With -f, a lost connection to a server is restored, and reading continues after the last record.',
    ...RECORD_OUTPUT_NOTES,
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: TAIL_DEFINITIONS,
  parse: parseTail,
  run,
})
