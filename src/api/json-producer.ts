import type { CallOptions } from './call-options.ts'
import { type Encode, OrderedEncoder } from './json-codec.ts'
import type { Producer } from './producer.ts'
import type { RecordTicket } from './record-batcher.ts'

/**
 * A producer of JSON values, made by `stream.json().producer()`: see `Producer`.
 *
 * ```ts
 * const producer = stream.json().producer()
 * await producer.submit({ item: 'tea' })
 * await producer.flush()
 * await producer.close()
 * ```
 */
export class JsonProducer<Input> {
  readonly #producer: Producer
  readonly #encode: Encode<Input>
  readonly #order = new OrderedEncoder()

  /** @internal */
  constructor(producer: Producer, encode: Encode<Input>) {
    this.#producer = producer
    this.#encode = encode
  }

  /** Accepts one value. Rejects with `invalid` for a value that is not JSON or does not match the schema. */
  async submit(value: Input, options?: CallOptions): Promise<RecordTicket> {
    const submit = (body: string) => this.#producer.submit(body, options)
    return this.#order.run(this.#encode(value), submit, options?.signal)
  }

  /** Sends the collected values. Resolves when everything submitted so far is durable. */
  async flush(options?: CallOptions): Promise<void> {
    await this.#order.idle(options)
    await this.#producer.flush(options)
  }

  /** Flushes and ends. Rejects with the failure that ended the producer. */
  async close(options?: CallOptions): Promise<void> {
    await this.#order.idle(options)
    await this.#producer.close(options)
  }

  /** Closes the producer for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#order.idle()
    await this.#producer[Symbol.asyncDispose]()
  }
}
