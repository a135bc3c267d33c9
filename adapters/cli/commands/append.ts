import { stat } from 'node:fs/promises'
import type { AppendAck, Header } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { appendAckJson } from '../../../src/wire/json-records.ts'
import { appendBatches } from '../append-batches.ts'
import { type ByteSource, descriptorSource, fileSource, streamSource } from '../byte-source.ts'
import { command, flag, integerArgument, positional, type Values, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { missingCreation } from '../create-missing.ts'
import { CliError, quoteArg, quotePath, redact } from '../errors.ts'
import { type Generation, generatedBatches, recordTemplate } from '../generated-records.ts'
import { type InputBatch, InputReader } from '../input-reader.ts'
import { countText, progressBar } from '../progress.ts'
import { splitHeader } from '../record-format.ts'
import { nameText, parseStreamName, streamOf } from '../stream-name.ts'
import { encryptionKey, KEY_DEFINITION, parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { durationMs } from '../times.ts'
import { checkFencingToken, FENCING_DEFINITION, MATCH_DEFINITION, matchedSeqNum } from './stream-commands.ts'

const DEFINITIONS = {
  stream: positional('Stream to append to: BASIN/STREAM'),
  text: positional('Record to append, or template of --count. Default: lines of standard input', {
    required: false,
  }),
  file: withValue('FILE', 'File whose lines are the records'),
  'skip-empty': flag('Skip empty lines'),
  header: withValue('NAME=VALUE', 'Header of every record; may be repeated', { isRepeated: true }),
  json: flag('Records are JSON objects, one a line; print the ack as JSON'),
  base64: flag('With --json: bodies and headers are base64'),
  count: withValue('N', 'Append N records made from the template TEXT'),
  rate: withValue('R', 'Append R records of TEXT a second, until Ctrl+C without --count'),
  create: flag('Fail if the stream does not exist', { default: true }),
  ...FENCING_DEFINITION,
  ...MATCH_DEFINITION,
  'retry-for': withValue(
    'DURATION',
    'How long to wait for a server that is not there. Default: 60s for a pipe, else not at all',
  ),
  quiet: flag('No progress bar and no summary'),
  ...KEY_DEFINITION,
  ...TARGET_DEFINITIONS,
} as const

function parse(values: Values<typeof DEFINITIONS>, { env }: CliContext) {
  const { text, file, json, base64, create, quiet, count, rate, 'fencing-token': fencingToken } = values
  if (text !== undefined && file !== undefined) {
    throw new CliError(2, '`--file` cannot be combined with TEXT')
  }
  if (file === '') throw new CliError(2, '`--file` must not be empty')
  if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
  if (json && values.header.length > 0) {
    throw new CliError(2, '`--header` cannot be combined with `--json`: the records have their own headers')
  }
  const headers = values.header.map(parseHeader)
  return {
    name: parseStreamName(values.stream, env),
    text,
    file,
    json,
    format: base64 ? ('base64' as const) : ('raw' as const),
    headers,
    skipEmpty: values['skip-empty'],
    generation: parseGeneration({ text, json, count, rate }, headers),
    create,
    quiet,
    fencingToken: checkFencingToken(fencingToken, '`--fencing-token`'),
    matchSeqNum: matchedSeqNum(values),
    retryMs: values['retry-for'] === undefined ? undefined : retryMsOf(values['retry-for']),
    encryptionKey: encryptionKey(values, env),
    target: parseTarget(values, env),
  }
}

function retryMsOf(text: string): number {
  const ms = text === '0' ? 0 : durationMs(text)
  if (ms !== undefined) return ms
  throw new CliError(
    2,
    `invalid duration ${quoteArg(text)}; \`--retry-for\` must be 0, or such as 90s or 15m`,
  )
}

type AppendArguments = ReturnType<typeof parse>

function parseHeader(text: string): Header {
  const [name, value] = splitHeader(text)
  if (name !== '' && value !== undefined) return [utf8(name), utf8(value)]
  throw new CliError(2, `invalid header ${quoteArg(text)}; \`--header\` must be NAME=VALUE`)
}

function parseGeneration(
  values: Pick<Values<typeof DEFINITIONS>, 'text' | 'json' | 'count' | 'rate'>,
  headers: readonly Header[],
): Generation | undefined {
  const { text, json, count, rate } = values
  if (count === undefined && rate === undefined) return undefined
  const option = count === undefined ? '--rate' : '--count'
  if (text === undefined) throw new CliError(2, `\`${option}\` requires TEXT, the template of the records`)
  if (json) throw new CliError(2, `\`${option}\` cannot be combined with \`--json\``)
  const perSecond = rate === undefined ? Number.POSITIVE_INFINITY : Number(rate)
  if (rate !== undefined && !(/^[0-9.]+$/.test(rate) && perSecond > 0)) {
    throw new CliError(
      2,
      `invalid rate ${quoteArg(rate)}; \`--rate\` must be a positive number of records a second`,
    )
  }
  return {
    template: recordTemplate(text),
    headers,
    count: count === undefined ? Number.POSITIVE_INFINITY : integerArgument(count, '`--count`'),
    rate: perSecond,
  }
}

export const APPEND = command({
  description: 'Append a record, the lines of a file or pipe, or generated records',
  examples: [
    'cat big.log | headwater append app-logs/web/1',
    'headwater append app-logs/web/1 "deployed v7" --header level=info',
    `headwater append app-logs/load '{"id":%i,"user":"%u","at":"%D"}' --count 10000 --rate 500`,
    'headwater read a/b --json --base64 | headwater append c/d --json --base64',
  ],
  notes: [
    'Each line is a record without its line break (LF or CRLF). Lines of a pipe are appended as they arrive.',
    'A missing stream is created with the first record. With --json, a line is',
    '{"body": "...", "headers": [["name", "value"]], "timestamp": 1767225600000}, all optional.',
    'While the server of a pipe is down, its lines wait in the pipe. What was in flight is repeated, and stored once.',
    'TEXT is a template with --count or --rate only; see `headwater help format`.',
  ],
  definitions: DEFINITIONS,
  parse,
  run,
})

async function run(args: AppendArguments, context: CliContext): Promise<void> {
  const { name, quiet, json, fencingToken, matchSeqNum, encryptionKey, generation } = args
  const source = await openSource(args, context)
  const waiting = new ServerWait(
    source.isPipe ? (args.retryMs ?? PIPE_RETRY_MS) : (args.retryMs ?? 0),
    context,
  )
  const appended = { records: 0, bytes: 0 }
  let first: AppendAck | undefined
  let last: AppendAck | undefined
  const summary = () => {
    if (last === undefined || first === undefined) return `Appended nothing to ${nameText(name)}`
    const end = last.end.seqNum - 1
    const range = first.start.seqNum === end ? `${end}` : `${first.start.seqNum} to ${end}`
    return `Appended ${countText(appended.records, 'record')} to ${nameText(name)}: sequence number ${range}`
  }
  let sent = 0
  const onUnknown = (records: number) => {
    sent = records
  }
  try {
    await withHeadwater(
      { ...args, mustExist: !args.create },
      context,
      async (hw, { signal }) => {
        const stop = () => source.input?.close()
        signal.addEventListener('abort', stop, { once: true })
        const bar = progressBar(
          quiet || source.isInteractive ? { ...context, terminal: undefined } : context,
          'Appending',
        )
        const onAck = (ack: AppendAck, { records, bytes }: InputBatch) => {
          waiting.end()
          first ??= ack
          last = ack
          appended.records += records.length
          appended.bytes += bytes
          bar.update(appended.bytes, source.input?.size, () => countText(appended.records, 'record'))
        }
        try {
          const create = await missingCreation(hw, name, { ...args, report: context.printError })
          const reader = new InputReader(args)
          const batches =
            generation !== undefined
              ? generatedBatches(generation, context, signal)
              : source.input === undefined
                ? reader.single(args.text!)
                : reader.batches(source.input, signal)
          const open = async () => {
            await create?.()
            return streamOf(hw, name, encryptionKey)
          }
          // A condition makes a batch repeatable without a producer.
          const isRepeatable = waiting.mayWait && args.target.kind === 'service' && matchSeqNum === undefined
          const events = { open, onAck, onFailure: stop, onUnknown }
          await appendBatches(batches, { fencingToken, matchSeqNum }, isRepeatable, events)
        } finally {
          bar.stop()
          stop()
          signal.removeEventListener('abort', stop)
        }
        // The input ended early. What was read is durable.
        signal.throwIfAborted()
      },
      waiting.connection,
    )
  } catch (error) {
    if (last !== undefined && !quiet) context.printError(`${summary()}, before it stopped`)
    if (sent > appended.records) {
      const first = (appended.records + 1).toLocaleString('en-US')
      const range = `from record ${first} to ${sent.toLocaleString('en-US')} of the input`
      context.printError(`Whether what was sent then is stored, ${range}, is unknown`)
    }
    throw waiting.reported(error)
  }
  if (json && first !== undefined && last !== undefined) {
    context.print(appendAckJson({ ...last, start: first.start }))
  }
  if (!quiet) context.printError(summary())
}

const PIPE_RETRY_MS = 60_000

/** Waits for a server that went away, for a limited time. */
class ServerWait {
  readonly #ms: number
  readonly #context: CliContext
  readonly #given = new AbortController()
  #cancel: (() => void) | undefined

  constructor(ms: number, context: CliContext) {
    this.#ms = ms
    this.#context = context
  }

  get mayWait(): boolean {
    return this.#ms > 0
  }

  /** The client repeats only what cannot be stored already, with back-off. */
  get connection() {
    if (this.#ms === 0) return {}
    return { retries: Number.POSITIVE_INFINITY, giveUp: this.#given.signal, onRetry: this.#begin }
  }

  readonly #begin = (failure: string): void => {
    if (this.#cancel !== undefined) return
    const { printError, clock } = this.#context
    const seconds = this.#ms / 1000
    printError(`headwater: ${failure}; trying again for ${seconds} s, Ctrl+C stops`)
    const error = new CliError(1, `${failure}; tried for ${seconds} s`)
    this.#cancel = clock.schedule(this.#ms, () => this.#given.abort(error))
  }

  /** The server has answered. */
  end(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** The error to report: why it gave up, if it has. */
  reported(error: unknown): unknown {
    this.end()
    return this.#given.signal.aborted ? this.#given.signal.reason : error
  }
}

interface Source {
  /** Undefined for the argument TEXT. */
  readonly input: ByteSource | undefined
  readonly isInteractive: boolean
  /** Whether another program makes the lines, which would be lost with this one. */
  readonly isPipe: boolean
}

async function openSource(
  { text, file, quiet, generation }: AppendArguments,
  context: CliContext,
): Promise<Source> {
  if (text !== undefined) return { input: undefined, isInteractive: generation === undefined, isPipe: false }
  if (file === undefined) {
    const descriptor = context.inputDescriptor
    const input = descriptor === undefined ? undefined : await descriptorSource(descriptor)
    if (input !== undefined) return { input, isInteractive: false, isPipe: input.size === undefined }
    const stream = context.input()
    const isInteractive = stream.isTTY ?? false
    if (isInteractive && !quiet) context.printError('Reading lines from the terminal; end with Ctrl+D')
    return { input: streamSource(stream), isInteractive, isPipe: !isInteractive }
  }
  try {
    // Opening a directory succeeds, reading it does not.
    if ((await stat(file)).isDirectory()) throw new CliError(1, `${quotePath(file)} is a directory`)
    return { input: await fileSource(file), isInteractive: false, isPipe: false }
  } catch (error) {
    if (error instanceof CliError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new CliError(1, `file ${quotePath(file)} does not exist`)
    throw new CliError(1, `cannot read ${quotePath(file)}: ${redact(message, file)}`)
  }
}
