import type { AppendConditions } from '../../src/model/append-input.ts'
import { TextLines } from '../../src/storage/text-lines.ts'
import { appendBatches, appendFrame } from './append-records.ts'
import type { BatchWriter, WriterEvents } from './batch-writer.ts'
import type { Client } from './client.ts'
import type { RecordBatch } from './record-reader.ts'
import type { StreamName } from './stream-name.ts'

/** Many proxies reject longer bodies. A batch that is longer is sent alone. */
const REQUEST_BYTES_MAX = 1024 * 1024
/** Servers limit the batches of a request whose response cannot be sent before the request has ended. */
const REQUEST_BATCHES_MAX = 1_000

/** Opens a writer to a stream of a server. */
export function serverWriter(
  client: Client,
  name: StreamName,
  conditions: AppendConditions,
  events: WriterEvents,
): BatchWriter {
  return new ServerWriter(client, name, conditions, events)
}

/**
 * Sends one request at a time, with all batches that were written while the one before was in flight. Several
 * requests could overtake each other, and a streamed body would wait forever behind a proxy that buffers it.
 */
class ServerWriter implements BatchWriter {
  readonly #client: Client
  readonly #name: StreamName
  readonly #conditions: AppendConditions
  readonly #events: WriterEvents
  /** Of the next request. */
  #batches: RecordBatch[] = []
  #frames: Uint8Array[] = []
  #length = 0
  #sending: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined
  #onRoom: (() => void) | undefined

  constructor(client: Client, name: StreamName, conditions: AppendConditions, events: WriterEvents) {
    this.#client = client
    this.#name = name
    this.#conditions = conditions
    this.#events = events
  }

  async write(batch: RecordBatch): Promise<void> {
    const { records } = batch
    const inputs = records instanceof TextLines ? records.bodies() : records
    const frame = appendFrame(inputs, this.#conditions)
    const isFull =
      this.#frames.length === REQUEST_BATCHES_MAX ||
      (this.#length > 0 && this.#length + frame.length > REQUEST_BYTES_MAX)
    if (isFull && this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve
      })
    }
    if (this.#failure !== undefined) throw this.#failure.error
    this.#batches.push(batch)
    this.#frames.push(frame)
    this.#length += frame.length
    this.#sending ??= this.#send()
  }

  async close(): Promise<void> {
    await this.#sending
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Sends requests until all batches are durable or one has failed. Never rejects. */
  async #send(): Promise<void> {
    try {
      while (this.#frames.length > 0) await this.#request()
    } catch (error) {
      this.#failure = { error }
      this.#events.onFailure()
      this.#onRoom?.()
    }
    this.#sending = undefined
  }

  async #request(): Promise<void> {
    this.#client.signal.throwIfAborted()
    const batches = this.#batches
    const frames = this.#frames
    this.#batches = []
    this.#frames = []
    this.#length = 0
    this.#onRoom?.()
    let acks = 0
    for await (const ack of appendBatches(this.#client, this.#name, frames)) {
      this.#events.onAck(ack, batches[acks++]!)
    }
  }
}
