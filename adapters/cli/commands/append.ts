import { Option } from '@commander-js/extra-typings'
import { type AppendAck, type Header, type Headwater, HeadwaterError } from '../../../src/index.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import { appendAckJson } from '../../../src/wire/json-records.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg } from '../errors.ts'
import { type LineOptions, lineBatches, openInput, singleBatch } from '../input.ts'
import { collect, durationOrZero, FENCING_OPTION, MATCH_OPTION, recordsCommand } from '../options.ts'
import { progressBar } from '../output.ts'
import { splitHeader } from '../record-format.ts'
import type { Server } from '../server.ts'
import { type TargetOptions, withHeadwater } from '../target.ts'
import {
  countText,
  encryptionKey,
  type KeyOptions,
  nameText,
  nonEmpty,
  type StreamName,
  streamName,
  streamOf,
} from '../values.ts'
import { creationText } from './resources.ts'

export const appendCommand = (context: CliContext) =>
  recordsCommand('append', {
    description: 'Append a record, or the lines of a file or pipe',
    examples: [
      'cat big.log | headwater append app-logs/web/1',
      'headwater append app-logs/web/1 "deployed v7" --header level=info',
      'headwater read a/b --json --base64 | headwater append c/d --json --base64',
    ],
    notes: [
      'Each line is a record without its line break (LF or CRLF). Lines of a pipe are appended as they arrive.',
      'A missing stream is created with the first record. With --json, a line is',
      '{"body": "...", "headers": [["name", "value"]], "timestamp": 1767225600000}, all optional.',
      'While the server of a pipe is down, its lines wait in the pipe. What was in flight is repeated, and stored once.',
    ],
  })
    .argument('<STREAM>', 'Stream to append to: BASIN/STREAM', streamName(context))
    .argument('[TEXT]', 'Record to append. Default: lines of standard input')
    .option('--file <FILE>', 'File whose lines are the records', nonEmpty)
    .option('--skip-empty', 'Skip empty lines')
    .option('--header <NAME=VALUE>', 'Header of every record; may be repeated', collect)
    .addOption(
      new Option('--json', 'Records are JSON objects, one a line; print the ack as JSON').conflicts('header'),
    )
    .option('--base64', 'With --json: bodies and headers are base64')
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
      const { json, base64, header = [], skipEmpty = false } = options
      if (text !== undefined && options.file !== undefined) {
        throw new CliError(2, '`--file` cannot be combined with TEXT')
      }
      if (base64 && !json) throw new CliError(2, '`--base64` requires `--json`')
      const lines = {
        json: json && (base64 ? 'base64' : 'raw'),
        headers: header.map(parseHeader),
        skipEmpty,
      } as const
      return append(name, text, { ...options, lines }, context)
    })

function parseHeader(text: string): Header {
  const [name, value] = splitHeader(text)
  if (name !== '' && value !== undefined) return [utf8(name), utf8(value)]
  throw new CliError(2, `invalid header ${quoteArg(text)}; \`--header\` must be NAME=VALUE`)
}

interface AppendOptions
  extends TargetOptions,
    KeyOptions,
    Pick<AppendConditions, 'fencingToken' | 'matchSeqNum'> {
  readonly file?: string | undefined
  readonly lines: LineOptions
  readonly create: boolean
  /** In milliseconds. */
  readonly retryFor?: number | undefined
  readonly quiet?: true | undefined
}

/** The time that lines of a pipe wait for a server: another program makes them, and they would be lost. */
const PIPE_RETRY_MS = 60_000

/** Appends one batch after the other, and says what is stored, whatever ends it. */
async function append(
  name: StreamName,
  text: string | undefined,
  options: AppendOptions,
  context: CliContext,
): Promise<void> {
  const { quiet, lines, fencingToken, matchSeqNum } = options
  const { clock, print, printError } = context
  const key = encryptionKey(options, context)
  const input = text === undefined ? await openInput(options.file, context) : undefined
  if (input?.isTerminal && !quiet) printError('Reading lines from the terminal; end with Ctrl+D')
  const batches = input === undefined ? singleBatch(text!, lines) : lineBatches(input, lines)
  const stopInput = () => void input?.stream.destroy()
  const isPipe = input !== undefined && !input.isTerminal && input.size === undefined
  const retryMs = options.retryFor ?? (isPipe ? PIPE_RETRY_MS : 0)
  const bar = progressBar(context, 'Appending', quiet || input === undefined || input.isTerminal)
  let first: AppendAck | undefined
  let last: AppendAck | undefined
  let stored = 0
  /** The number of records of the last batch that may be stored without an ack. */
  let unknown = 0
  /** The time since which the server cannot be reached. */
  let awaySince: number | undefined
  const giveUp = new AbortController()

  const onRetry = (failure: string) => {
    const limit = `${retryMs / 1000} s`
    if (awaySince === undefined) printError(`headwater: ${failure}; trying again for ${limit}, Ctrl+C stops`)
    awaySince ??= clock.now()
    if (clock.now() - awaySince < retryMs) return
    giveUp.abort(new CliError(1, `${failure}; tried for ${limit}`))
  }
  const appendAll = async (hw: Headwater, server: Server | undefined) => {
    const signal = context.stopSignal()
    signal.addEventListener('abort', stopInput, { once: true })
    const missing = await missingResource(hw, name, options)
    // The first record creates what is missing: an input without one must leave no stream.
    const basin = hw.basin(name.basin, { autoCreate: missing !== undefined })
    const stream = basin.stream(name.stream, { encryptionKey: key })
    // A producer makes batches repeatable, as a condition does. Its id is secret: another writer with the
    // same id could store a batch in place of the next one, which would then be acknowledged as a duplicate.
    const hasProducer = server !== undefined && retryMs > 0 && matchSeqNum === undefined
    const id = `headwater-append-${idFrom(secureRandom)}`
    let producer = hasProducer ? { id, epoch: 0, seq: 0 } : undefined
    for await (const records of batches) {
      const expected = matchSeqNum === undefined ? undefined : matchSeqNum + stored
      const conditions = { fencingToken, matchSeqNum: expected }
      try {
        last = await stream.append(records, { ...conditions, producer }).catch((error) => {
          if (producer?.seq !== 0 || !isProducerRefused(error)) throw error
          producer = undefined
          return stream.append(records, conditions)
        })
      } catch (error) {
        if (HeadwaterError.is(error) && error.mayHaveEffects) unknown = records.length
        throw error
      }
      awaySince = undefined
      producer &&= { ...producer, seq: producer.seq + 1 }
      if (first === undefined && missing === 'basin') printError(`Created basin ${name.basin}`)
      if (first === undefined && missing !== undefined) printError(await creationText(hw, name))
      first ??= last
      stored += records.length
      bar.update(input?.bytesRead ?? 0, input?.size, countText(stored, 'record'))
    }
    // The input ended early. What was read is durable.
    signal.throwIfAborted()
  }
  const summary = () => {
    if (first === undefined || last === undefined) return `Appended nothing to ${nameText(name)}`
    const end = last.end.seqNum - 1
    const range = first.start.seqNum === end ? `${end}` : `${first.start.seqNum} to ${end}`
    return `Appended ${countText(stored, 'record')} to ${nameText(name)}: sequence number ${range}`
  }

  try {
    await withHeadwater(options, context, appendAll, {
      mustExist: !options.create,
      // The client repeats only what cannot be stored already, with back-off.
      ...(retryMs > 0 && { retries: Infinity, giveUp: giveUp.signal, onRetry }),
    })
  } catch (error) {
    if (last !== undefined && !quiet) printError(`${summary()}, before it stopped`)
    if (unknown > 0) {
      const [from, to] = [stored + 1, stored + unknown].map((number) => number.toLocaleString('en-US'))
      printError(
        `Whether what was sent then is stored, from record ${from} to ${to} of the input, is unknown`,
      )
    }
    throw error
  } finally {
    bar.stop()
    stopInput()
  }
  if (lines.json !== undefined && first !== undefined && last !== undefined) {
    print(appendAckJson({ ...last, start: first.start }))
  }
  if (!quiet) printError(summary())
}

/** Whether a server takes no producer, or no further one for the stream. It has stored nothing then. */
function isProducerRefused(error: unknown): boolean {
  if (!HeadwaterError.is(error) || error.mayHaveEffects) return false
  return error.code === 'unsupported' || error.code === 'too_many_producers'
}

/**
 * Resolves to what does not exist, if anything. A caller who may not ask is left to the append.
 *
 * @throws CliError if it shall not be created, or a new stream would refuse the append.
 */
async function missingResource(
  hw: Headwater,
  name: StreamName,
  { create, fencingToken, matchSeqNum }: AppendOptions,
): Promise<'basin' | 'stream' | undefined> {
  try {
    await streamOf(hw, name).config()
    return undefined
  } catch (error) {
    const code = HeadwaterError.is(error) ? error.code : undefined
    if (code === 'permission_denied') return undefined
    if (code !== 'basin_not_found' && code !== 'stream_not_found') throw error
    const missing = code === 'basin_not_found' ? 'basin' : 'stream'
    if (create && !fencingToken && !matchSeqNum) return missing
    const what = missing === 'basin' ? `basin ${name.basin}` : `stream ${nameText(name)}`
    throw new CliError(1, `${what} does not exist; create it with \`headwater create\``)
  }
}
