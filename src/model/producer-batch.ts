import { assertValid } from './errors.ts'
import { PRODUCER_ID_BYTES_MAX, STREAM_SEQ_BYTES_MAX } from './limits.ts'
import { textProblem } from './names.ts'
import { assertInteger, assertMembers, type Check, type MembersOf, unchecked } from './validation.ts'

/**
 * Identifies a batch among those of its producer, so that the batch is stored once however often it is
 * appended.
 */
export interface ProducerBatch {
  /** The name of the producer: 1 to 256 bytes of UTF-8, unique among the writers of the stream. */
  readonly id: string
  /** The incarnation of the producer. A greater one fences off the lower ones. An integer from 0. */
  readonly epoch: number
  /** The number of the batch among those of the epoch: 0, 1, 2 and so on. */
  readonly seq: number
}

/** The rule of a text that must not be empty. */
const isName =
  (what: string, bytesMax: number): Check =>
  (value, field) =>
    assertValid(
      value === '' ? `${what} must not be empty` : textProblem(what, value as string, bytesMax),
      field,
    )

const isProducerId = isName('producer id', PRODUCER_ID_BYTES_MAX)

/** The rule of a `streamSeq`. */
export const isStreamSeq = isName('stream sequence', STREAM_SEQ_BYTES_MAX)

const MEMBERS: MembersOf<ProducerBatch> = { id: unchecked, epoch: unchecked, seq: unchecked }

/** The rule of a {@link ProducerBatch}, all of whose members are required. */
export const isProducerBatch: Check = (value, field) => {
  assertMembers(value, MEMBERS, field, `${field}.`)
  const { id, epoch, seq } = value as ProducerBatch
  isProducerId(id, `${field}.id`)
  assertInteger(epoch, `${field}.epoch`)
  assertInteger(seq, `${field}.seq`)
}
