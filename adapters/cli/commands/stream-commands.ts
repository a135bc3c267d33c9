import { fenceRecord, type RecordInput, trimRecord } from '../../../src/index.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import { timeText } from '../../../src/wire/json.ts'
import { appendAckJson } from '../../../src/wire/json-records.ts'
import { command, flag, integerArgument, positional, type Values, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError } from '../errors.ts'
import { countText } from '../progress.ts'
import { streamDetails } from '../resource-details.ts'
import { nameText, parseStreamName, streamOf } from '../stream-name.ts'
import { encryptionKey, KEY_DEFINITION, parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'

const STREAM_DEFINITION = positional('BASIN/STREAM')

/** The option of commands that append. */
export const FENCING_DEFINITION = {
  'fencing-token': withValue('TOKEN', 'Fail unless the stream has this fencing token'),
} as const

/** The option of commands that append on condition of the tail. */
export const MATCH_DEFINITION = {
  'match-seq-num': withValue('N', 'Fail unless this is the next sequence number'),
} as const

/** @throws CliError with exit code 2. */
export function matchedSeqNum(values: Values<typeof MATCH_DEFINITION>): number | undefined {
  const { 'match-seq-num': text } = values
  return text === undefined ? undefined : integerArgument(text, '`--match-seq-num`')
}

/** The definition that `fence` and `trim` share: both append a command record. */
const COMMAND_DEFINITIONS = {
  ...FENCING_DEFINITION,
  ...MATCH_DEFINITION,
  json: flag('Print the ack as JSON'),
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

type CommandValues = Values<typeof COMMAND_DEFINITIONS> & { readonly stream: string }

function parseAppend(values: CommandValues, { env }: CliContext) {
  const { 'fencing-token': fencingToken } = values
  return {
    name: parseStreamName(values.stream, env),
    fencingToken: checkFencingToken(fencingToken, '`--fencing-token`'),
    matchSeqNum: matchedSeqNum(values),
    json: values.json,
    encryptionKey: encryptionKey(values, env),
    target: parseTarget(values, env),
  }
}

/** Returns the token. @throws CliError with exit code 2. */
export function checkFencingToken<Token extends string | undefined>(token: Token, name: string): Token {
  const problem = token === undefined ? undefined : fencingTokenProblem(token)
  if (problem !== undefined) throw new CliError(2, `${name}: ${problem}`)
  return token
}

interface CommandAppend extends ReturnType<typeof parseAppend> {
  readonly record: RecordInput
  readonly done: string
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
  description: 'Set the fencing token of a stream',
  examples: ['headwater fence app-logs/web/1 worker-2', 'headwater fence app-logs/web/1 ""'],
  notes: ['Appends that state another token fail from then on. The command itself is stored as a record.'],
  definitions: {
    stream: STREAM_DEFINITION,
    fencing_token: positional('New fencing token, at most 36 bytes; an empty one clears it'),
    ...COMMAND_DEFINITIONS,
  },
  parse(values, context): CommandAppend {
    const token = checkFencingToken(values.fencing_token, 'FENCING_TOKEN')
    const common = parseAppend(values, context)
    const done = token === '' ? 'Cleared the fencing token of' : 'Set the fencing token of'
    return { ...common, record: fenceRecord(token), done: `${done} ${nameText(common.name)}` }
  },
  run: appendCommand,
})

export const TRIM = command({
  description: 'Remove the records of a stream below a sequence number',
  examples: ['headwater trim app-logs/web/1 1000'],
  notes: [
    'Prints how many records it removes. The command itself is stored as a record. A sequence number beyond',
    'the tail also removes records that are appended later, and needs --force.',
  ],
  definitions: {
    stream: STREAM_DEFINITION,
    seq_num: positional('First sequence number to keep'),
    force: flag('Trim beyond the tail'),
    ...COMMAND_DEFINITIONS,
  },
  parse(values, context) {
    const seqNum = integerArgument(values.seq_num, 'SEQ_NUM')
    return { ...parseAppend(values, context), seqNum, force: values.force }
  },
  async run({ seqNum, force, ...common }, context) {
    const { name, encryptionKey } = common
    const before = await withHeadwater(common, context, (hw) =>
      streamDetails(streamOf(hw, name, encryptionKey)),
    )
    const { firstSeqNum, nextSeqNum } = before
    if (nextSeqNum !== undefined && seqNum > nextSeqNum && !force) {
      throw new CliError(
        1,
        `${seqNum} is beyond the tail of ${nameText(name)}, ${nextSeqNum}; see \`--force\``,
      )
    }
    const isKnown = firstSeqNum !== undefined && nextSeqNum !== undefined
    const removed = isKnown && Math.max(0, Math.min(seqNum, nextSeqNum) - firstSeqNum)
    const what = removed === false ? 'records' : countText(removed, 'record')
    const done = `Removed ${what} of ${nameText(name)} below ${seqNum}`
    await appendCommand({ ...common, record: trimRecord(seqNum), done }, context)
  },
})

export const CHECK_TAIL = command({
  description: 'Print the next sequence number of a stream, and the time of its last record',
  examples: ['headwater check-tail app-logs/web/1'],
  definitions: {
    stream: STREAM_DEFINITION,
    json: flag('Print the tail as JSON'),
    ...TARGET_DEFINITIONS,
  },
  parse: (values, { env }) => ({
    name: parseStreamName(values.stream, env),
    json: values.json,
    target: parseTarget(values, env),
  }),
  run: ({ name, json, target }, context) =>
    withHeadwater({ target }, context, async (hw) => {
      const { seqNum, timestamp } = await streamOf(hw, name).checkTail()
      if (json) context.print(JSON.stringify({ seq_num: seqNum, timestamp }))
      else context.print(`${seqNum}  ${seqNum === 0 ? '-' : timeText(timestamp)}`)
    }),
})
