import type { AppendAck, AppendSession, Stream } from '../../src/index.ts'
import type { AppendConditions, ProducerBatch, RecordInput } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { idFrom, secureRandom } from '../../src/runtime/ids.ts'
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
  let producer = isRepeatable ? newProducer() : undefined
  let session: AppendSession | undefined
  let { matchSeqNum } = conditions
  let sent = 0
  try {
    try {
      for await (const batch of batches) {
        const { records } = batch
        sent += records.length
        stream ??= await open()
        if (producer !== undefined) {
          const ack = await appendOnce(stream, records, { fencingToken: conditions.fencingToken, producer })
          if (ack !== undefined) {
            producer = { ...producer, seq: producer.seq + 1 }
            onAck(ack, batch)
            continue
          }
          producer = undefined
        }
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
 * A producer of one run. Nobody else knows its id before the first append, and no reader sees it: whoever
 * knew it could store a batch in place of the next one, which would then be acknowledged as a duplicate.
 */
function newProducer(): ProducerBatch {
  return { id: `headwater-append-${idFrom(secureRandom)}`, epoch: 0, seq: 0 }
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
