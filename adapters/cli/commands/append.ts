import { stat } from 'node:fs/promises'
import type { AppendAck, Stream } from '../../../src/index.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { lineBatch } from '../../../src/model/line-batch.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import { TextLines } from '../../../src/storage/text-lines.ts'
import { appendAckJson } from '../../../src/wire/json-append.ts'
import { parseArguments, takeRepeated } from '../arguments.ts'
import { type ByteSource, descriptorSource, fileSource, streamSource } from '../byte-source.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { createMissing } from '../create-missing.ts'
import { CliError, quoteArg, quotePath, redact } from '../errors.ts'
import { type InputBatch, InputReader } from '../input-reader.ts'
import { countText, progressBar } from '../progress.ts'
import { NAME_NOTES, nameText, parseStreamName, streamOf } from '../stream-name.ts'
import {
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  TARGET_NOTES,
  withHeadwater,
} from '../target.ts'

const DEFINITIONS = {
  stream: { type: 'positional', required: true, description: 'Stream to append to: BASIN/STREAM' },
  text: {
    type: 'positional',
    required: false,
    description: 'Record to append. Default: lines of standard input',
  },
  file: { type: 'string', description: 'File whose lines are the records' },
  json: {
    type: 'boolean',
    default: false,
    description: 'Records are JSON objects, one a line; print the ack as JSON',
  },
  base64: { type: 'boolean', default: false, description: 'With --json: bodies and headers are base64' },
  header: { type: 'string', description: 'Header of every record, as NAME:VALUE; may be repeated' },
  create: {
    type: 'boolean',
    default: true,
    description: 'Create a missing basin and stream',
    negativeDescription: 'Fail if the stream does not exist',
  },
  'fencing-token': { type: 'string', description: 'Fail unless the stream has this fencing token' },
  quiet: { type: 'boolean', default: false, description: 'No progress bar and no summary' },
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], context: CliContext) {
  const headers = takeRepeated(args, '--header')
  const parsed = parseArguments(headers.rest, DEFINITIONS, 'append')
  const { text, file, json, base64, create, quiet, 'fencing-token': fencingToken } = parsed
  if (text !== undefined && file !== undefined) {
    throw new CliError(2, '`--file` cannot be combined with TEXT')
  }
  if (file === '') throw new CliError(2, '`--file` must not be empty')
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  if (json && headers.values.length > 0) {
    throw new CliError(2, '`--header` cannot be combined with `--json`: the records have their own headers')
  }
  const problem = fencingToken === undefined ? undefined : fencingTokenProblem(fencingToken)
  if (problem !== undefined) throw new CliError(2, `\`--fencing-token\`: ${problem}`)
  return {
    name: parseStreamName(parsed.stream, context.env),
    text,
    file,
    json,
    format: base64 ? ('base64' as const) : ('raw' as const),
    headers: headers.values.map(parseHeader),
    create,
    quiet,
    fencingToken,
    encryptionKey: encryptionKey(parsed['encryption-key'], context.env),
    target: parseTarget(parsed, context.env),
  }
}

type AppendArguments = ReturnType<typeof parse>

function parseHeader(text: string): readonly [Uint8Array, Uint8Array] {
  const colon = text.indexOf(':')
  if (colon <= 0) throw new CliError(2, `invalid header ${quoteArg(text)}; \`--header\` must be NAME:VALUE`)
  return [utf8(text.slice(0, colon)), utf8(text.slice(colon + 1).trimStart())]
}

export const APPEND = command({
  name: 'append',
  description: 'Append a record, or the lines of a file or pipe',
  notes: [
    'Each line is a record without its line break. Lines of a pipe are appended as they arrive. With --json,',
    'a line is {"body": "...", "headers": [["name", "value"]], "timestamp": 1767225600000}, all optional.',
    'Examples: cat big.log | headwater append app-logs/web/1',
    '          headwater append app-logs/web/1 "deployed v7" --header "level: info"',
    '          headwater read a/b --json --base64 | headwater append c/d --json --base64',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run,
})

async function run(args: AppendArguments, context: CliContext): Promise<void> {
  const { name, quiet, json, create, fencingToken, encryptionKey } = args
  const source = await openSource(args, context)
  const appended = { records: 0, bytes: 0 }
  let first: AppendAck | undefined
  let last: AppendAck | undefined
  const summary = () => {
    if (last === undefined || first === undefined) return `Appended nothing to ${nameText(name)}`
    const end = last.end.seqNum - 1
    const range = first.start.seqNum === end ? `${end}` : `${first.start.seqNum} to ${end}`
    return `Appended ${countText(appended.records, 'record')} to ${nameText(name)}: sequence number ${range}`
  }
  try {
    await withHeadwater({ ...args, mustExist: !create }, context, async (hw, { signal }) => {
      const stop = () => source.input?.close()
      signal.addEventListener('abort', stop, { once: true })
      const bar = progressBar(
        quiet || source.isInteractive ? { ...context, terminal: undefined } : context,
        'Appending',
      )
      const onAck = (ack: AppendAck, { count, bytes }: InputBatch) => {
        first ??= ack
        last = ack
        appended.records += count
        appended.bytes += bytes
        bar.update(appended.bytes, source.input?.size, () => countText(appended.records, 'record'))
      }
      try {
        await createMissing(hw, name, { create, report: context.printError })
        const reader = new InputReader(args)
        const batches =
          source.input === undefined ? reader.single(args.text!) : reader.batches(source.input, signal)
        const stream = streamOf(hw, name, encryptionKey)
        await appendBatches(stream, batches, { fencingToken }, { onAck, onFailure: stop })
      } finally {
        bar.stop()
        stop()
        signal.removeEventListener('abort', stop)
      }
      // The input ended early. What was read is durable.
      signal.throwIfAborted()
    })
  } catch (error) {
    if (last !== undefined && !quiet) context.printError(`${summary()}, before it stopped`)
    throw error
  }
  if (json && first !== undefined && last !== undefined) {
    context.print(appendAckJson({ ...last, start: first.start }))
  }
  if (!quiet) context.printError(summary())
}

interface AppendEvents {
  /** Receives each batch in order, once it is durable. */
  readonly onAck: (ack: AppendAck, batch: InputBatch) => void
  /** Stops the input after a batch that failed. */
  readonly onFailure: () => void
}

/** Appends batches in order, several at a time. Rejects with the first failure, after the acks before it. */
async function appendBatches(
  stream: Stream,
  batches: Iterable<InputBatch> | AsyncIterable<InputBatch>,
  conditions: AppendConditions,
  { onAck, onFailure }: AppendEvents,
): Promise<void> {
  const session = await stream.appendSession()
  try {
    for await (const batch of batches) {
      const { records } = batch
      // The memory of the batch can be used again when it is in flight.
      const ticket = await (records instanceof TextLines
        ? session.submitBatch(lineBatch(records, conditions))
        : session.submit(records, conditions))
      ticket.ack().then((ack) => onAck(ack, batch), onFailure)
    }
  } finally {
    await session.close()
  }
}

interface Source {
  /** Undefined for the argument TEXT. */
  readonly input: ByteSource | undefined
  readonly isInteractive: boolean
}

async function openSource({ text, file, quiet }: AppendArguments, context: CliContext): Promise<Source> {
  if (text !== undefined) return { input: undefined, isInteractive: true }
  if (file === undefined) {
    const descriptor = context.inputDescriptor
    const input = descriptor === undefined ? undefined : await descriptorSource(descriptor)
    if (input !== undefined) return { input, isInteractive: false }
    const stream = context.input()
    const isInteractive = stream.isTTY ?? false
    if (isInteractive && !quiet) context.printError('Reading lines from the terminal; end with Ctrl+D')
    return { input: streamSource(stream), isInteractive }
  }
  try {
    // Opening a directory succeeds, reading it does not.
    if ((await stat(file)).isDirectory()) throw new CliError(1, `${quotePath(file)} is a directory`)
    return { input: await fileSource(file), isInteractive: false }
  } catch (error) {
    if (error instanceof CliError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(1, `file ${quotePath(file)} does not exist`)
    throw new CliError(1, `cannot read ${quotePath(file)}: ${redact(message, file)}`)
  }
}
