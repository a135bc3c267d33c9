import type { AppendAck, ProducerBatch } from '../../src/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { RequestExchange } from '../http/exchange.ts'
import { DurableStreamsError } from './durable-streams-error.ts'
import { headerIntegerOf } from './header-values.ts'

/** The batch that a request identifies; undefined if it does not. Throws 400. */
export function producerBatch(exchange: RequestExchange): ProducerBatch | undefined {
  const id = exchange.header('producer-id')
  const epoch = exchange.header('producer-epoch')
  const seq = exchange.header('producer-seq')
  if (id === undefined && epoch === undefined && seq === undefined) return undefined
  if (id === undefined || epoch === undefined || seq === undefined) {
    throw new DurableStreamsError(
      400,
      '`producer-id`, `producer-epoch` and `producer-seq` require each other',
    )
  }
  return { id, epoch: headerIntegerOf(epoch, 'producer-epoch'), seq: headerIntegerOf(seq, 'producer-seq') }
}

/** The outcome of an append of a producer: what was stored now, or before. */
export interface ProducerOutcome {
  readonly isDuplicate: boolean
  /** The last batch of the producer. */
  readonly lastSeq: number
}

/** The outcome of an append that succeeded. */
export function outcomeOf({ seq }: ProducerBatch, ack: AppendAck): ProducerOutcome {
  return { isDuplicate: ack.duplicate === true, lastSeq: seq }
}

/** The outcome of a batch that the producer has appended before others; undefined for other errors. */
export function earlierOutcome(error: unknown): ProducerOutcome | undefined {
  if (!HeadwaterError.is(error) || error.code !== 'already_appended') return undefined
  return { isDuplicate: true, lastSeq: error.lastSeq! }
}

export function producerHeaders(
  { epoch }: ProducerBatch,
  { lastSeq }: ProducerOutcome,
): Record<string, string> {
  return { 'producer-epoch': String(epoch), 'producer-seq': String(lastSeq) }
}
