import type { Observable } from 'rxjs'
import type { AppendAck } from '../model/info.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import type { AppendOptions, AppendSession, AppendTicket } from './append-session.ts'
import type { CallOptions } from './call-options.ts'
import type { Producer, RecordTicket } from './producer.ts'

/** Passes encoded values on in the order of the calls, although schemas may validate asynchronously. */
export class OrderedEncoder {
  readonly #queue = new SerialQueue()
  #waiting = 0

  /**
   * Calls `send` with what was encoded: synchronously if nothing waits. Does not wait for what it returns.
   */
  async run<Encoded, Sent>(
    encoded: MaybePromise<Encoded>,
    send: (encoded: Encoded) => Promise<Sent>,
  ): Promise<Sent> {
    if (!isPromise(encoded) && this.#waiting === 0) return send(encoded)
    const encoding = Promise.resolve(encoded)
    // Its rejection is handled when its turn comes.
    encoding.catch(() => {})
    this.#waiting++
    let sent: Promise<Sent> | undefined
    await this.#queue.run(async () => {
      try {
        sent = send(await encoding)
        sent.catch(() => {})
      } finally {
        this.#waiting--
      }
    })
    return sent!
  }

  /** Resolves when everything that was encoded so far has been passed on. */
  idle(): Promise<void> {
    return this.#queue.run(async () => {})
  }
}

/** Encodes one value. */
type Encode<Input> = (value: Input) => MaybePromise<string>

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
    return this.#order.run(this.#encode(value), (body) => this.#session.submit(body, options))
  }

  /** Accepts no more values. Resolves when every accepted value is durable. */
  async close(options?: CallOptions): Promise<void> {
    await this.#order.idle()
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
    return this.#order.run(this.#encode(value), (body) => this.#producer.submit(body, options))
  }

  /** Sends the collected values. Resolves when everything submitted so far is durable. */
  async flush(options?: CallOptions): Promise<void> {
    await this.#order.idle()
    await this.#producer.flush(options)
  }

  /** Flushes and ends. Rejects with the failure that ended the producer. */
  async close(options?: CallOptions): Promise<void> {
    await this.#order.idle()
    await this.#producer.close(options)
  }

  /** Closes the producer for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#order.idle()
    await this.#producer[Symbol.asyncDispose]()
  }
}
