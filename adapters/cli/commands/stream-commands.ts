import { fenceRecord, type RecordInput, type Stream, trimRecord } from '../../../src/index.ts'
import { timeText } from '../../../src/wire/json.ts'
import { appendAckJson } from '../../../src/wire/json-records.ts'
import type { CliContext } from '../context.ts'
import { CliError, validateArgument } from '../errors.ts'
import { FENCING_OPTION, MATCH_OPTION, recordsCommand, targetCommand } from '../options.ts'
import { type TargetOptions, withHeadwater } from '../target.ts'
import {
  countText,
  encryptionKey,
  integer,
  type KeyOptions,
  nameText,
  type StreamName,
  streamName,
  streamOf,
} from '../values.ts'
import { streamDetails } from './ls.ts'

const STREAM = 'BASIN/STREAM'

export const fenceCommand = (context: CliContext) =>
  recordsCommand('fence', {
    description: 'Set the fencing token of a stream',
    examples: ['headwater fence app-logs/web/1 worker-2', 'headwater fence app-logs/web/1 ""'],
    notes: ['Appends that state another token fail from then on. The command itself is stored as a record.'],
  })
    .argument('<STREAM>', STREAM, streamName(context))
    .argument('<FENCING_TOKEN>', 'New fencing token, at most 36 bytes; an empty one clears it')
    .addOption(FENCING_OPTION)
    .addOption(MATCH_OPTION)
    .option('--json', 'Print the ack as JSON')
    .action((name, token, options) => {
      const record = validateArgument(() => fenceRecord(token), 'FENCING_TOKEN')
      const done = token === '' ? 'Cleared the fencing token of' : 'Set the fencing token of'
      return appendRecord(name, options, context, async () => ({
        record,
        done: `${done} ${nameText(name)}`,
      }))
    })

export const trimCommand = (context: CliContext) =>
  recordsCommand('trim', {
    description: 'Remove the records of a stream below a sequence number',
    examples: ['headwater trim app-logs/web/1 1000'],
    notes: [
      'Prints how many records it removes. The command itself is stored as a record. A sequence number beyond',
      'the tail also removes records that are appended later, and needs --force.',
    ],
  })
    .argument('<STREAM>', STREAM, streamName(context))
    .argument('<SEQ_NUM>', 'First sequence number to keep', integer())
    .option('--force', 'Trim beyond the tail')
    .addOption(FENCING_OPTION)
    .addOption(MATCH_OPTION)
    .option('--json', 'Print the ack as JSON')
    .action((name, seqNum, options) =>
      appendRecord(name, options, context, async (stream) => {
        const { firstSeqNum, nextSeqNum } = await streamDetails(stream)
        if (nextSeqNum !== undefined && seqNum > nextSeqNum && !options.force) {
          throw new CliError(
            1,
            `${seqNum} is beyond the tail of ${nameText(name)}, ${nextSeqNum}; see \`--force\``,
          )
        }
        const isKnown = firstSeqNum !== undefined && nextSeqNum !== undefined
        const removed = isKnown && Math.max(0, Math.min(seqNum, nextSeqNum) - firstSeqNum)
        const what = removed === false ? 'records' : countText(removed, 'record')
        return { record: trimRecord(seqNum), done: `Removed ${what} of ${nameText(name)} below ${seqNum}` }
      }),
    )

interface CommandOptions extends TargetOptions, KeyOptions {
  readonly fencingToken?: string | undefined
  readonly matchSeqNum?: number | undefined
  readonly json?: boolean | undefined
}

/** Appends a command record. `prepare` resolves to it, and to what is printed when it is appended. */
async function appendRecord(
  name: StreamName,
  options: CommandOptions,
  context: CliContext,
  prepare: (stream: Stream) => Promise<{ readonly record: RecordInput; readonly done: string }>,
): Promise<void> {
  const { fencingToken, matchSeqNum, json } = options
  const key = encryptionKey(options, context)
  await withHeadwater(options, context, async (hw) => {
    const stream = streamOf(hw, name, key)
    const { record, done } = await prepare(stream)
    const ack = await stream.append(record, { fencingToken, matchSeqNum })
    if (json) context.print(appendAckJson(ack))
    else context.printError(`${done}; the command has sequence number ${ack.start.seqNum}`)
  })
}

export const checkTailCommand = (context: CliContext) =>
  targetCommand('check-tail', {
    description: 'Print the next sequence number of a stream, and the time of its last record',
    examples: ['headwater check-tail app-logs/web/1'],
  })
    .argument('<STREAM>', STREAM, streamName(context))
    .option('--json', 'Print the tail as JSON')
    .action((name, options) =>
      withHeadwater(options, context, async (hw) => {
        const { seqNum, timestamp } = await streamOf(hw, name).checkTail()
        if (options.json) context.print(JSON.stringify({ seq_num: seqNum, timestamp }))
        else context.print(`${seqNum}  ${seqNum === 0 ? '-' : timeText(timestamp)}`)
      }),
    )
