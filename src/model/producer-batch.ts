import { assertValid } from './errors.ts'
import { PRODUCER_ID_BYTES_MAX, STREAM_SEQ_BYTES_MAX } from './limits.ts'
import { textProblem } from './names.ts'
import { assertInteger, assertMembers, assertText, type Check, type MembersOf } from './validation.ts'

/**
 * Identifies a batch among those of its producer, so that the batch is stored once however often it is
 * appended.
 */
export interface ProducerBatch {
  /** The name of the producer: 1 to 128 bytes of UTF-8, unique among the writers of the stream. */
  readonly id: string
  /** The incarnation of the producer. A greater one fences off the lower ones. An integer from 0. */
  readonly epoch: number
  /** The number of the batch among those of the epoch: 0, 1, 2 and so on. */
  readonly seq: number
}

/** The rule of a producer's id. */
const isProducerId: Check = (value, field) => {
  assertValid(value === '' ? 'producer id must not be empty' : undefined, field)
  assertValid(textProblem('producer id', value as string, PRODUCER_ID_BYTES_MAX), field)
}

const MEMBERS: MembersOf<ProducerBatch> = { id: isProducerId, epoch: assertInteger, seq: assertInteger }

/** The members of {@link ProducerBatch}, all of which are required. */
export const PRODUCER_BATCH: Check = (value, field) => {
  assertMembers(value, MEMBERS, field, `${field}.`)
  const { id, epoch, seq } = value as ProducerBatch
  assertText(id, `${field}.id`)
  assertInteger(epoch, `${field}.epoch`)
  assertInteger(seq, `${field}.seq`)
}

/** The rule of a `streamSeq`. */
export const isStreamSeq: Check = (value, field) => {
  assertValid(value === '' ? 'stream sequence must not be empty' : undefined, field)
  assertValid(textProblem('stream sequence', value as string, STREAM_SEQ_BYTES_MAX), field)
}

/** A copy, because the caller may change its own while the append waits. */
export function copyProducerBatch(producer: ProducerBatch | undefined): ProducerBatch | undefined {
  return producer && { id: producer.id, epoch: producer.epoch, seq: producer.seq }
}
