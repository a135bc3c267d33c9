import { fenceRecord, type RecordInput, trimRecord } from '../../../src/index.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import { appendAckJson } from '../../../src/wire/json-append.ts'
import { dateTimeText } from '../../../src/wire/json-members.ts'
import { integerArgument, parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { NAME_NOTES, nameText, parseStreamName, type StreamName, streamOf } from '../stream-name.ts'
import {
  type CliTarget,
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  TARGET_NOTES,
  type TargetValues,
  withHeadwater,
} from '../target.ts'

const STREAM_DEFINITION = { type: 'positional', required: true, description: 'BASIN/STREAM' } as const

/** What `fence` and `trim` have in common: both append a command record. */
const COMMAND_DEFINITIONS = {
  'fencing-token': { type: 'string', description: 'Fail unless the stream has this fencing token' },
  'match-seq-num': { type: 'string', description: 'Fail unless this is the next sequence number' },
  json: { type: 'boolean', default: false, description: 'Print the ack as JSON' },
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

const FENCE_DEFINITIONS = {
  stream: STREAM_DEFINITION,
  fencing_token: {
    type: 'positional',
    required: true,
    description: 'New fencing token, at most 36 bytes; an empty one clears it',
  },
  ...COMMAND_DEFINITIONS,
} as const

const TRIM_DEFINITIONS = {
  stream: STREAM_DEFINITION,
  seq_num: { type: 'positional', required: true, description: 'First sequence number to keep' },
  ...COMMAND_DEFINITIONS,
} as const

interface CommandAppend {
  readonly name: StreamName
  readonly record: RecordInput
  readonly done: string
  readonly fencingToken: string | undefined
  readonly matchSeqNum: number | undefined
  readonly json: boolean
  readonly encryptionKey: string | undefined
  readonly target: CliTarget
}

interface CommandValues extends TargetValues {
  readonly stream: string
  readonly 'fencing-token'?: string | undefined
  readonly 'match-seq-num'?: string | undefined
  readonly 'encryption-key'?: string | undefined
  readonly json: boolean
}

function parseConditions(parsed: CommandValues, { env }: CliContext) {
  const { 'fencing-token': fencingToken, 'match-seq-num': matchSeqNum } = parsed
  return {
    name: parseStreamName(parsed.stream, env),
    fencingToken: fencingToken === undefined ? undefined : checkToken(fencingToken, '`--fencing-token`'),
    matchSeqNum: matchSeqNum === undefined ? undefined : integerArgument(matchSeqNum, '`--match-seq-num`'),
    json: parsed.json,
    encryptionKey: encryptionKey(parsed['encryption-key'], env),
    target: parseTarget(parsed, env),
  }
}

function checkToken(token: string, name: string): string {
  const problem = fencingTokenProblem(token)
  if (problem !== undefined) throw new CliError(2, `${name}: ${problem}`)
  return token
}

function parseFence(args: readonly string[], context: CliContext): CommandAppend {
  const parsed = parseArguments(args, FENCE_DEFINITIONS, 'fence')
  const token = checkToken(parsed.fencing_token, 'FENCING_TOKEN')
  const common = parseConditions(parsed, context)
  const done = token === '' ? 'Cleared the fencing token of' : 'Set the fencing token of'
  return { ...common, record: fenceRecord(token), done: `${done} ${nameText(common.name)}` }
}

function parseTrim(args: readonly string[], context: CliContext): CommandAppend {
  const parsed = parseArguments(args, TRIM_DEFINITIONS, 'trim')
  const seqNum = integerArgument(parsed.seq_num, 'SEQ_NUM')
  const common = parseConditions(parsed, context)
  return { ...common, record: trimRecord(seqNum), done: `Trimmed ${nameText(common.name)} below ${seqNum}` }
}

async function appendCommand(args: CommandAppend, context: CliContext): Promise<void> {
  const { name, record, done, json } = args
  const { fencingToken, matchSeqNum, encryptionKey } = args
  const ack = await withHeadwater(args, context, (hw) =>
    streamOf(hw, name, encryptionKey).append(record, { fencingToken, matchSeqNum }),
  )
  if (json) context.print(appendAckJson(ack))
  else context.printError(`${done}; the command has sequence number ${ack.start.seqNum}`)
}

export const FENCE = command({
  name: 'fence',
  description: 'Set the fencing token of a stream',
  notes: [
    'Appends that state another token fail from then on. The command itself is stored as a record.',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: FENCE_DEFINITIONS,
  parse: parseFence,
  run: appendCommand,
})

export const TRIM = command({
  name: 'trim',
  description: 'Remove the records of a stream below a sequence number',
  notes: ['The command itself is stored as a record.', ...NAME_NOTES, ...TARGET_NOTES],
  definitions: TRIM_DEFINITIONS,
  parse: parseTrim,
  run: appendCommand,
})

const CHECK_TAIL_DEFINITIONS = {
  stream: STREAM_DEFINITION,
  json: { type: 'boolean', default: false, description: 'Print the tail as JSON' },
  ...TARGET_DEFINITIONS,
} as const

export const CHECK_TAIL = command({
  name: 'check-tail',
  description: 'Print the next sequence number of a stream, and the time of its last record',
  notes: [...NAME_NOTES, ...TARGET_NOTES],
  definitions: CHECK_TAIL_DEFINITIONS,
  parse: (args, { env }) => {
    const parsed = parseArguments(args, CHECK_TAIL_DEFINITIONS, 'check-tail')
    return { name: parseStreamName(parsed.stream, env), json: parsed.json, target: parseTarget(parsed, env) }
  },
  run: ({ name, json, target }, context) =>
    withHeadwater({ target }, context, async (hw) => {
      const { seqNum, timestamp } = await streamOf(hw, name).checkTail()
      if (json) context.print(JSON.stringify({ seq_num: seqNum, timestamp }))
      else context.print(`${seqNum}  ${seqNum === 0 ? '-' : dateTimeText(timestamp)}`)
    }),
})
