import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { AppendAck, Headwater, RecordInput } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import { appendAckJson } from '../../../src/wire/json-append.ts'
import { appendRecords } from '../append-records.ts'
import { parseArguments, takeRepeated } from '../arguments.ts'
import type { Client } from '../client.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { createMissing } from '../create-missing.ts'
import { CliError, quoteArg, quotePath, redact } from '../errors.ts'
import { countText, progressBar } from '../progress.ts'
import { type RecordBatch, RecordReader } from '../record-reader.ts'
import { NAME_NOTES, nameText, parseStreamName } from '../stream-name.ts'
import {
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  TARGET_NOTES,
  withClient,
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
  const { name, quiet, json, create } = args
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
    await withClient({ ...args, mustExist: !create }, context, async (client, engine) => {
      const stop = () => source.input?.destroy()
      client.signal.addEventListener('abort', stop, { once: true })
      const bar = progressBar(
        quiet || source.isInteractive ? { ...context, terminal: undefined } : context,
        'Appending',
      )
      try {
        await createMissing(client, name, { create, report: context.printError })
        const reader = new RecordReader(args)
        const batches =
          source.input === undefined ? reader.single(args.text!) : reader.batches(source.input, client.signal)
        const acks =
          engine === undefined ? appendOverHttp(client, args, batches) : appendTo(engine, args, batches)
        for await (const { ack, batch } of acks) {
          first ??= ack
          last = ack
          appended.records += batch.records.length
          appended.bytes += batch.bytes
          bar.update(appended.bytes, source.size, countText(appended.records, 'record'))
        }
      } finally {
        bar.stop()
        client.signal.removeEventListener('abort', stop)
      }
      // The input ended early. What was read is durable.
      client.signal.throwIfAborted()
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

interface Source {
  /** Undefined for the argument TEXT. */
  readonly input: Readable | undefined
  /** In bytes, for a file. */
  readonly size: number | undefined
  readonly isInteractive: boolean
}

async function openSource({ text, file, quiet }: AppendArguments, context: CliContext): Promise<Source> {
  if (text !== undefined) return { input: undefined, size: undefined, isInteractive: true }
  if (file === undefined) {
    const input = context.input()
    const isInteractive = input.isTTY ?? false
    if (isInteractive && !quiet) context.printError('Reading lines from the terminal; end with Ctrl+D')
    return { input, size: undefined, isInteractive }
  }
  try {
    const stats = await stat(file)
    const input = createReadStream(file, { highWaterMark: 1024 * 1024 })
    return { input, size: stats.isFile() ? stats.size : undefined, isInteractive: false }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(1, `file ${quotePath(file)} does not exist`)
    throw new CliError(1, `cannot read ${quotePath(file)}: ${redact(message, file)}`)
  }
}

interface Appended {
  readonly ack: AppendAck
  readonly batch: RecordBatch
}

/** Appends to a storage, several batches at a time. */
async function* appendTo(
  engine: Headwater,
  { name, fencingToken, encryptionKey }: AppendArguments,
  batches: AsyncIterable<RecordBatch>,
): AsyncGenerator<Appended> {
  const stream = engine.basin(name.basin).stream(name.stream, { encryptionKey })
  const pending: RecordBatch[] = []
  async function* recordsOf(): AsyncGenerator<readonly RecordInput[]> {
    for await (const batch of batches) {
      pending.push(batch)
      yield batch.records
    }
  }
  for await (const ack of stream.appendAll(recordsOf(), { fencingToken }))
    yield { ack, batch: pending.shift()! }
}

/** Appends to a server, one batch at a time, so that an error leaves no doubt about the order. */
async function* appendOverHttp(
  client: Client,
  { name, fencingToken }: AppendArguments,
  batches: AsyncIterable<RecordBatch>,
): AsyncGenerator<Appended> {
  for await (const batch of batches) {
    yield { ack: await appendRecords(client, name, batch.records, { fencingToken }), batch }
  }
}
