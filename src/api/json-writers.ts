import type { Observable } from 'rxjs'
import type { AppendAck } from '../model/info.ts'
import type { AppendOptions, AppendSession, AppendTicket } from './append-session.ts'
import type { CallOptions } from './call-options.ts'
import { type Encode, OrderedEncoder } from './json-codec.ts'
import type { Producer, RecordTicket } from './producer.ts'

/** An append session of JSON values, made by `stream.json().appendSession()`: see `AppendSession`. */
export class JsonAppendSession<Input> {
  readonly #session: AppendSession
  readonly #encode: Encode<Input>
  readonly #order = new OrderedEncoder()

  /** @internal */
  constructor(session: AppendSession, encode: Encode<Input>) {
    this.#session = session
    this.#encode = encode
  }

  /** Acks in order, from the subscription on. */
  get acks$(): Observable<AppendAck> {
    return this.#session.acks$
  }

  /** Accepts one value. Rejects with `invalid` for a value that is not JSON or does not match the schema. */
  async submit(value: Input, options?: AppendOptions): Promise<AppendTicket> {
    const submit = (body: string) => this.#session.submit(body, options)
    return this.#order.run(this.#encode(value), submit, options?.signal)
  }

  /** Accepts no more values. Resolves when every accepted value is durable. */
  async close(options?: CallOptions): Promise<void> {
    await this.#order.idle(options)
    await this.#session.close(options)
  }

  /** Closes the session for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#order.idle()
    await this.#session[Symbol.asyncDispose]()
  }
}

/** A producer of JSON values, made by `stream.json().producer()`: see `Producer`. */
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
