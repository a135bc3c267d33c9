import { assertFencingToken, type RecordInput } from '../model/append-input.ts'
import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { assertMembers } from '../model/validation.ts'
import { type AnySignal, onAnyAbort, SharedSignal, unlessAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { AppendOptions, AppendSession, AppendTicket } from './append-session.ts'
import { CALL_OPTIONS, type CallOptions } from './call-options.ts'
import { ClosableIterator } from './record-cursor.ts'

/** Options of `appendAll` and `writable`. */
export type AppendAllOptions = Pick<AppendOptions, 'fencingToken' | 'signal'>

const APPEND_ALL_OPTIONS = { ...CALL_OPTIONS, fencingToken: assertFencingToken }

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
      const batch = isPromise(encoded) ? await unlessAborted(signal, unlessAborted(ending, encoded)) : encoded
      return session.submit(batch, { fencingToken })
    },
    signals: [closing, signal],
  }
}

/** How many acks may be outstanding before no more input is taken. */
const OUTSTANDING_MAX = 1_000

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
  #acks: AsyncGenerator<AppendAck, void, undefined> | undefined

  constructor(source: AsyncIterable<Input> | Iterable<Input>, sink: InputSink<Input>) {
    super()
    this.#source = source
    this.#sink = { ...sink, signals: [...sink.signals, this.#left.signal] }
  }

  async next(): Promise<IteratorResult<AppendAck, void>> {
    if (this.#left.signal.aborted) return { done: true, value: undefined }
    this.#acks ??= generateAcks(this.#source, this.#sink)
    try {
      return await this.#acks.next()
    } catch (error) {
      if (error === LEFT) return { done: true, value: undefined }
      throw error
    }
  }

  async return(): Promise<IteratorResult<AppendAck, void>> {
    this.#left.abort(LEFT)
    await this.#acks?.return().catch(() => {})
    return { done: true, value: undefined }
  }
}

type Step = 'acked' | 'submitted' | 'done'

/** Submits each input to a session and yields the acks in order. */
async function* generateAcks<Input>(
  source: AsyncIterable<Input> | Iterable<Input>,
  { open, submit, signals }: InputSink<Input>,
): AsyncGenerator<AppendAck, void, undefined> {
  const ending = new SharedSignal()
  const ignoreSignals = onAnyAbort(signals, (reason) => ending.abort(reason))
  let unsubscribe = () => {}
  const inputs = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  let isExhausted = false
  let session: AppendSession | undefined
  let failure: { readonly error: unknown } | undefined
  try {
    const opened = await unlessAborted(ending, open(), (late) => late.close())
    session = opened
    const outstanding: Promise<AppendAck>[] = []
    let submitting: Promise<Step> | undefined
    let isDone = false
    /** Ends the wait for the next step. */
    let stopWaiting = (_: Step): void => {}
    // The session can fail while the source is idle; by then all of its acks have been delivered.
    const subscription = opened.acks$.subscribe({
      error: (error: unknown) => {
        failure ??= { error }
        isDone = true
        stopWaiting('done')
      },
    })
    unsubscribe = () => subscription.unsubscribe()
    const submitNext = async (): Promise<Step> => {
      try {
        const input = await inputs.next()
        isExhausted = input.done === true
        if (input.done) return 'done'
        const acked = (await submit(opened, input.value)).ack()
        // Only the oldest ack is awaited, and a failure of the session rejects the later ones too.
        acked.catch(() => {})
        outstanding.push(acked)
        return 'submitted'
      } catch (error) {
        failure ??= { error }
        return 'done'
      }
    }
    while (!isDone || outstanding.length > 0) {
      if (!isDone && outstanding.length < OUTSTANDING_MAX) submitting ??= submitNext()
      const first = outstanding[0]?.then(() => 'acked' as const)
      // Made for each step: a promise that lasts would keep something of every race.
      const stopped = new Promise<Step>((resolve) => {
        stopWaiting = resolve
      })
      const steps: Promise<Step>[] = [first, submitting, stopped].filter((step) => step !== undefined)
      const winner = await unlessAborted(ending, Promise.race(steps))
      if (winner === 'acked') yield await outstanding.shift()!
      else {
        submitting = undefined
        isDone ||= winner === 'done'
      }
    }
    if (failure !== undefined) throw failure.error
  } finally {
    ignoreSignals()
    unsubscribe()
    // Not awaited: a source that waits for its next value returns only after that has come.
    if (!isExhausted) Promise.resolve(inputs.return?.()).catch(() => {})
    await session?.close().catch(() => {})
  }
}
