import { Option } from '@commander-js/extra-typings'
import {
  type AppendAck,
  type AppendSession,
  type Header,
  type Headwater,
  HeadwaterError,
  type ProducerBatch,
  type Stream,
} from '../../../src/index.ts'
import type { AppendConditions, RecordInput } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import { appendAckJson } from '../../../src/wire/json-records.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg } from '../errors.ts'
import {
  generatedBatches,
  type InputBatch,
  type LineOptions,
  lineBatches,
  openInput,
  singleBatch,
} from '../input.ts'
import { collect, durationOrZero, FENCING_OPTION, MATCH_OPTION, recordsCommand } from '../options.ts'
import { progressBar } from '../output.ts'
import { splitHeader } from '../record-format.ts'
import { type Connected, type TargetOptions, type UseOptions, withHeadwater } from '../target.ts'
import {
  countText,
  encryptionKey,
  fail,
  integer,
  type KeyOptions,
  nameText,
  nonEmpty,
  type StreamName,
  streamName,
  streamOf,
} from '../values.ts'
import { creationText, retentionOf } from './resources.ts'

export const appendCommand = (context: CliContext) =>
  recordsCommand('append', {
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
      'TEXT has fields with --count or --rate only; see `headwater help format`.',
    ],
  })
    .argument('<STREAM>', 'Stream to append to: BASIN/STREAM', streamName(context))
    .argument('[TEXT]', 'Record to append, or format of --count. Default: lines of standard input')
    .option('--file <FILE>', 'File whose lines are the records', nonEmpty)
    .option('--skip-empty', 'Skip empty lines')
    .option('--header <NAME=VALUE>', 'Header of every record; may be repeated', collect)
    .addOption(
      new Option('--json', 'Records are JSON objects, one a line; print the ack as JSON').conflicts([
        'header',
        'count',
        'rate',
      ]),
    )
    .option('--base64', 'With --json: bodies and headers are base64')
    .option('--count <N>', 'Append N records made from TEXT', integer())
    .option('--rate <R>', 'Append R records of TEXT a second, until Ctrl+C without --count', positiveNumber)
    .option('--no-create', 'Fail if the stream does not exist')
    .addOption(FENCING_OPTION)
    .addOption(MATCH_OPTION)
    .addOption(
      new Option(
        '--retry-for <DURATION>',
        'How long to wait for a server that is not there. Default: 60s for a pipe, else not at all',
      ).argParser(durationOrZero),
    )
    .option('--quiet', 'No progress bar and no summary')
    .action((name, text, options) => {
      const { json, base64, count = Infinity, rate = Infinity, header = [], skipEmpty = false } = options
      const generates = count < Infinity || rate < Infinity
      if (text !== undefined && options.file !== undefined) {
        throw new CliError(2, '`--file` cannot be combined with TEXT')
      }
      if (text === undefined && generates) {
        throw new CliError(2, '`--count` and `--rate` require TEXT, of which the records are made')
      }
      if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
      const headers = header.map(parseHeader)
      const lines = { json: json && (base64 ? 'base64' : 'raw'), headers, skipEmpty } as const
      const generation = generates ? generatedBatches({ text: text!, headers, count, rate }) : undefined
      return append(name, text, { ...options, lines, generation }, context)
    })

function parseHeader(text: string): Header {
  const [name, value] = splitHeader(text)
  if (name !== '' && value !== undefined) return [utf8(name), utf8(value)]
  throw new CliError(2, `invalid header ${quoteArg(text)}; \`--header\` must be NAME=VALUE`)
}

function positiveNumber(text: string): number {
  const value = /^[0-9.]+$/.test(text) ? Number(text) : Number.NaN
  return value > 0 ? value : fail('It must be a positive number')
}

interface AppendOptions extends TargetOptions, KeyOptions, Conditions {
  readonly file?: string | undefined
  readonly lines: LineOptions
  readonly generation: ReturnType<typeof generatedBatches> | undefined
  readonly create: boolean
  /** In milliseconds. */
  readonly retryFor?: number | undefined
  readonly quiet?: true | undefined
}

type Conditions = Pick<AppendConditions, 'fencingToken' | 'matchSeqNum'>

async function append(
  name: StreamName,
  text: string | undefined,
  options: AppendOptions,
  context: CliContext,
): Promise<void> {
  const { quiet, lines, generation, fencingToken, matchSeqNum } = options
  const key = encryptionKey(options, context)
  const input = text === undefined ? await openInput(options.file, context) : undefined
  if (input?.isTerminal && !quiet) context.printError('Reading lines from the terminal; end with Ctrl+D')
  const isPipe = input !== undefined && !input.isTerminal && input.size === undefined
  // Another program makes the lines of a pipe, which would be lost with this one.
  const waiting = new ServerWait(options.retryFor ?? (isPipe ? PIPE_RETRY_MS : 0), context)
  const isShort = input === undefined ? generation === undefined : input.isTerminal
  const bar = progressBar(context, 'Appending', quiet || isShort)
  const appended = { records: 0, bytes: 0, sent: 0 }
  let first: AppendAck | undefined
  let last: AppendAck | undefined
  const onAck = (ack: AppendAck, { records, bytes }: InputBatch) => {
    waiting.end()
    first ??= ack
    last = ack
    appended.records += records.length
    appended.bytes += bytes
    bar.update(appended.bytes, input?.size, countText(appended.records, 'record'))
  }
  const summary = () => {
    if (first === undefined || last === undefined) return `Appended nothing to ${nameText(name)}`
    const end = last.end.seqNum - 1
    const range = first.start.seqNum === end ? `${end}` : `${first.start.seqNum} to ${end}`
    return `Appended ${countText(appended.records, 'record')} to ${nameText(name)}: sequence number ${range}`
  }
  const use = async (hw: Headwater, { server, signal }: Connected) => {
    const stop = () => void input?.stream.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      const create = await missingCreation(hw, name, options, context.printError)
      const batches =
        generation !== undefined
          ? generation(context, signal)
          : input === undefined
            ? singleBatch(text!, lines)
            : lineBatches(input.stream, lines)
      const open = async () => {
        await create?.()
        return streamOf(hw, name, key)
      }
      // A condition makes a batch repeatable without a producer.
      const isRepeatable = waiting.mayWait && server !== undefined && matchSeqNum === undefined
      const onUnknown = (sent: number) => {
        appended.sent = sent
      }
      const events = { open, onAck, onFailure: stop, onUnknown }
      await appendBatches(batches, { fencingToken, matchSeqNum }, isRepeatable, events)
    } finally {
      bar.stop()
      stop()
      signal.removeEventListener('abort', stop)
    }
    // The input ended early. What was read is durable.
    signal.throwIfAborted()
  }
  try {
    await withHeadwater(options, context, use, { mustExist: !options.create, ...waiting.connection })
  } catch (error) {
    if (last !== undefined && !quiet) context.printError(`${summary()}, before it stopped`)
    if (appended.sent > appended.records) {
      const from = (appended.records + 1).toLocaleString('en-US')
      const range = `from record ${from} to ${appended.sent.toLocaleString('en-US')} of the input`
      context.printError(`Whether what was sent then is stored, ${range}, is unknown`)
    }
    throw waiting.reported(error)
  }
  if (lines.json !== undefined && first !== undefined && last !== undefined) {
    context.print(appendAckJson({ ...last, start: first.start }))
  }
  if (!quiet) context.printError(summary())
}

/**
 * Resolves to a function that creates the basin and the stream and reports that, undefined if they exist. A
 * caller who may not ask or create is left to the append, which the basin may permit to create the stream.
 *
 * @throws CliError if nothing shall be created, or a new stream would refuse the append.
 */
async function missingCreation(
  hw: Headwater,
  name: StreamName,
  { create, fencingToken, matchSeqNum }: Conditions & { readonly create: boolean },
  report: (line: string) => void,
): Promise<(() => Promise<void>) | undefined> {
  const { basin, stream } = name
  const config = streamOf(hw, name).config()
  const missing = await failureOf(config, ['basin_not_found', 'stream_not_found', 'permission_denied'])
  if (missing === undefined || missing === 'permission_denied') return undefined
  const what = missing === 'basin_not_found' ? `basin ${basin}` : `stream ${nameText(name)}`
  if (!create) {
    const remedy = 'create it with `headwater create`, or omit `--no-create`'
    throw new CliError(1, `${what} does not exist; ${remedy}`)
  }
  if (fencingToken || matchSeqNum) {
    throw new CliError(
      1,
      `${what} does not exist; \`--fencing-token\` and \`--match-seq-num\` are for streams that do`,
    )
  }
  const isNew = async (creation: Promise<unknown>) =>
    (await failureOf(creation, ['resource_already_exists', 'permission_denied'])) === undefined
  return async () => {
    if (missing === 'basin_not_found' && (await isNew(hw.createBasin(basin)))) {
      report(`Created basin ${basin}`)
    }
    if (await isNew(hw.basin(basin).createStream(stream))) {
      report(creationText(name, await retentionOf(hw, name)))
    }
  }
}

/** Resolves to the code that a call fails with if it is an expected one; to undefined if it succeeds. */
async function failureOf(call: Promise<unknown>, expected: readonly string[]): Promise<string | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    if (HeadwaterError.is(error) && expected.includes(error.code)) return error.code
    throw error
  }
}

interface AppendEvents {
  /** Opens the stream when the first batch is there: a refused line must leave no empty stream. */
  readonly open: () => Promise<Stream>
  /** Receives each batch in order, once it is durable. */
  readonly onAck: (ack: AppendAck, batch: InputBatch) => void
  /** Stops the input after a batch that failed. */
  readonly onFailure: () => void
  /** Receives how many records were sent in all, if some of them may be stored without an ack. */
  readonly onUnknown: (sent: number) => void
}

/**
 * Appends batches in order. Rejects with the first failure, after the acks before it.
 *
 * @param isRepeatable Whether each batch is stored once however often its request is repeated, on a server
 *   that knows producers. Batches are appended one at a time then, otherwise several at a time.
 */
async function appendBatches(
  batches: AsyncIterable<InputBatch>,
  { fencingToken, matchSeqNum }: Conditions,
  isRepeatable: boolean,
  { open, onAck, onFailure, onUnknown }: AppendEvents,
): Promise<void> {
  let stream: Stream | undefined
  let session: AppendSession | undefined
  // The id is secret: another writer with the same id could store a batch in place of the next one, which
  // would then be acknowledged as a duplicate.
  let producer = isRepeatable
    ? { id: `headwater-append-${idFrom(secureRandom)}`, epoch: 0, seq: 0 }
    : undefined
  let sent = 0
  try {
    try {
      for await (const batch of batches) {
        const { records } = batch
        stream ??= await open()
        const condition = matchSeqNum === undefined ? undefined : matchSeqNum + sent
        sent += records.length
        if (producer !== undefined) {
          const ack = await appendOnce(stream, records, { fencingToken, producer })
          producer = ack && { ...producer, seq: producer.seq + 1 }
          if (ack !== undefined) onAck(ack, batch)
        }
        if (producer === undefined) {
          session ??= await stream.appendSession()
          const ticket = await session.submit(records, { fencingToken, matchSeqNum: condition })
          ticket.ack().then((ack) => onAck(ack, batch), onFailure)
        }
      }
    } finally {
      await session?.close()
    }
  } catch (error) {
    if (HeadwaterError.is(error) && error.mayHaveEffects) onUnknown(sent)
    throw error
  }
}

/**
 * Appends a batch that is stored once. Resolves to undefined if it is the first one and the server takes no
 * producer, or no further one for the stream.
 */
async function appendOnce(
  stream: Stream,
  records: readonly RecordInput[],
  conditions: Pick<AppendConditions, 'fencingToken'> & { readonly producer: ProducerBatch },
): Promise<AppendAck | undefined> {
  try {
    return await stream.append(records, conditions)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.mayHaveEffects || conditions.producer.seq > 0) throw error
    if (error.code === 'unsupported' || error.code === 'too_many_producers') return undefined
    throw error
  }
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
  get connection(): UseOptions {
    if (!this.mayWait) return {}
    return { retries: Infinity, giveUp: this.#given.signal, onRetry: (failure) => this.#begin(failure) }
  }

  #begin(failure: string): void {
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
