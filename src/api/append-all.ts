import { invalid } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import { generateAcks } from './generate-acks.ts'
import type { InputSink } from './input-sink.ts'
import { ClosableIterator } from './record-cursor.ts'

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
