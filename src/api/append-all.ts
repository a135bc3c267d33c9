import { isFencingToken, type RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { assertMembers } from '../model/validation.ts'
import { type AnySignal, unlessAnyAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { AppendOptions, AppendSession, AppendTicket } from './append-session.ts'
import { ClosableIterator } from './cursor-iterator.ts'
import { loadSessions } from './load-sessions.ts'
import { CALL_OPTIONS, type CallOptions } from './options.ts'

/** The reason of a consumer that left the loop. */
const LEFT = {}

/**
 * Submits each input to a session and yields the acks in order. When an input is rejected, the acks of the
 * inputs before it come first. Leaving the loop and the signals end the generator at once, even while the
 * source is idle: the `return()` of an async generator function would wait for the pending `next()`.
 */
export function appendAll<Input>(
  source: AsyncIterable<Input> | Iterable<Input>,
  sink: InputSink<Input>,
): AsyncGenerator<AppendAck, void, undefined> {
  const isIterable = Symbol.asyncIterator in Object(source) || Symbol.iterator in Object(source)
  // The characters of a string are not meant as records.
  if (typeof source !== 'object' || !isIterable) throw invalid('`appendAll` needs an iterable', 'source')
  return new AckIterator(source, sink)
}

class AckIterator<Input> extends ClosableIterator<AppendAck> {
  readonly #source: AsyncIterable<Input> | Iterable<Input>
  readonly #sink: InputSink<Input>
  readonly #left = new AbortController()
  #acks: Promise<AsyncGenerator<AppendAck, void, undefined>> | undefined

  constructor(source: AsyncIterable<Input> | Iterable<Input>, sink: InputSink<Input>) {
    super()
    this.#source = source
    this.#sink = { ...sink, signals: [...sink.signals, this.#left.signal] }
  }

  async next(): Promise<IteratorResult<AppendAck, void>> {
    if (this.#left.signal.aborted) return { done: true, value: undefined }
    this.#acks ??= this.#begin()
    try {
      return await (await this.#acks).next()
    } catch (error) {
      if (error === LEFT) return { done: true, value: undefined }
      throw error
    }
  }

  async return(): Promise<IteratorResult<AppendAck, void>> {
    this.#left.abort(LEFT)
    await this.#acks?.then((acks) => acks.return()).catch(() => {})
    return { done: true, value: undefined }
  }

  async #begin(): Promise<AsyncGenerator<AppendAck, void, undefined>> {
    const { signals } = this.#sink
    const { generateAcks } = await unlessAnyAborted(signals, loadSessions())
    return generateAcks(this.#source, this.#sink)
  }
}

/** Options of `appendAll` and `writable`. */
export type AppendAllOptions = Pick<AppendOptions, 'fencingToken' | 'signal'>

const APPEND_ALL_OPTIONS = { ...CALL_OPTIONS, fencingToken: isFencingToken }

/** The destination of many inputs. */
export interface InputSink<Input> {
  readonly open: () => Promise<AppendSession>
  /** Rejects without an append if the signal aborts before the input is encoded. */
  readonly submit: (session: AppendSession, input: Input, signal?: AbortSignal) => Promise<AppendTicket>
  /** End the appends with their reasons. */
  readonly signals: readonly (AnySignal | undefined)[]
}

/**
 * Returns what appends inputs to a stream, one session at a time. The session knows only inputs that are
 * encoded, so that its end waits for no other. Throws `invalid` for invalid options.
 */
export function inputSink<Input>(
  stream: { appendSession(options: CallOptions): Promise<AppendSession> },
  options: AppendAllOptions,
  closing: AnySignal,
  encode: (input: Input) => MaybePromise<RecordInput | readonly RecordInput[]> = (input) =>
    input as RecordInput,
): InputSink<Input> {
  assertMembers(options, APPEND_ALL_OPTIONS, 'options')
  const { fencingToken, signal } = options
  return {
    open: () => stream.appendSession({ signal }),
    submit: async (session, input, ending) => {
      const encoded = encode(input)
      const batch = isPromise(encoded) ? await unlessAnyAborted([signal, ending], encoded) : encoded
      return session.submit(batch, { fencingToken })
    },
    signals: [closing, signal],
  }
}
