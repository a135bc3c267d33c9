import type { AppendAck, AppendSession, Stream } from '../../src/index.ts'
import type { AppendConditions, ProducerBatch, RecordInput } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { InputBatch } from './input-reader.ts'

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
export async function appendBatches(
  batches: AsyncIterable<InputBatch>,
  conditions: Pick<AppendConditions, 'fencingToken' | 'matchSeqNum'>,
  isRepeatable: boolean,
  { open, onAck, onFailure, onUnknown }: AppendEvents,
): Promise<void> {
  let stream: Stream | undefined
  let idempotent: IdempotentAppends | undefined
  let session: AppendSession | undefined
  let { matchSeqNum } = conditions
  let sent = 0
  try {
    try {
      for await (const batch of batches) {
        const { records } = batch
        sent += records.length
        if (stream === undefined) {
          stream = await open()
          if (isRepeatable) idempotent = new IdempotentAppends(stream)
        }
        const ack = await idempotent?.append(records, conditions)
        if (ack !== undefined) {
          onAck(ack, batch)
          continue
        }
        idempotent = undefined
        session ??= await stream.appendSession()
        const ticket = await session.submit(records, { ...conditions, matchSeqNum })
        if (matchSeqNum !== undefined) matchSeqNum += records.length
        ticket.ack().then((ack) => onAck(ack, batch), onFailure)
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
 * The producer ids that all runs of the program share. A stream knows a limited number of producers for days,
 * so a run must not have an id of its own.
 */
const PRODUCER_IDS = 64

/** Appends batches of which the server stores each once, because they are those of a producer. */
class IdempotentAppends {
  readonly #stream: Stream
  #producer = newProducer()
  #hasAppended = false

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Appends a batch. Resolves to undefined if it is the first one and the server knows no producers. */
  async append(
    records: readonly RecordInput[],
    { fencingToken }: Pick<AppendConditions, 'fencingToken'>,
  ): Promise<AppendAck | undefined> {
    for (;;) {
      const producer = this.#producer
      try {
        const ack = await this.#stream.append(records, { fencingToken, producer })
        this.#producer = { ...producer, seq: producer.seq + 1 }
        this.#hasAppended = true
        return ack
      } catch (error) {
        if (!HeadwaterError.is(error) || error.mayHaveEffects) throw error
        if (error.code === 'producer_fenced') {
          // Another run has taken the id.
          this.#producer = newProducer(error.producerEpoch)
          continue
        }
        const isUnknown = error.code === 'unsupported' || error.code === 'too_many_producers'
        if (isUnknown && !this.#hasAppended) return undefined
        throw error
      }
    }
  }
}

/** The runs that begin within this many milliseconds have epochs in any order, but hardly the same one. */
const EPOCH_MS = 10_000
const EPOCHS = 2 ** 24

/** A producer with an epoch of its own, which is greater than `above` and those of runs that are over. */
function newProducer(above = 0): ProducerBatch {
  const id = `headwater-append-${Math.floor(Math.random() * PRODUCER_IDS)}`
  const first = Math.max(Math.floor(Date.now() / EPOCH_MS) * EPOCHS, above + 1)
  return { id, epoch: first + Math.floor(Math.random() * EPOCHS), seq: 0 }
}
