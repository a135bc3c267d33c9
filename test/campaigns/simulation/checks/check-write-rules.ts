import { HeadwaterError } from '../../../../src/index.ts'
import type { AppendAttempt } from '../append-attempt.ts'
import type { Moment } from '../stream-history.ts'
import { lastBatchOf } from '../write-rules.ts'

const REFUSALS: ReadonlySet<string> = new Set([
  'already_appended',
  'producer_fenced',
  'producer_gap',
  'stream_closed',
  'stream_seq_not_increasing',
])

/** Whether an append was rejected by a rule of producers, closed streams or `streamSeq`. */
export function isWriteRefusal(error: unknown): error is HeadwaterError {
  if (!HeadwaterError.is(error)) return false
  return REFUSALS.has(error.code) || (error.code === 'invalid' && error.field === 'producer')
}

/** Returns why an append cannot have been refused at this moment with this error, as a clause. */
export function writeRefusalContradiction(
  error: HeadwaterError,
  { conditions }: AppendAttempt,
  { log, rules, state }: Moment,
): string | undefined {
  if (log === undefined) return 'there is no stream'
  const { producer, streamSeq } = conditions
  const known = producer && lastBatchOf(rules, producer.id)
  const description = known === undefined ? 'it is unknown' : `it has appended ${known.epoch}/${known.seq}`
  const isSameEpoch = known !== undefined && known.epoch === producer!.epoch
  const hasAppended = isSameEpoch && producer!.seq <= known.seq
  const holds = (condition: boolean, otherwise: string) => (condition ? undefined : otherwise)
  switch (error.code) {
    case 'stream_closed':
      return holds(
        rules.isClosed && error.seqNum === state.tail && !hasAppended,
        rules.isClosed ? `it was closed at ${state.tail}; ${description}` : 'it is open',
      )
    case 'stream_seq_not_increasing':
      return holds(
        streamSeq !== undefined &&
          rules.streamSeq !== undefined &&
          error.streamSeq === rules.streamSeq &&
          streamSeq <= rules.streamSeq &&
          !hasAppended,
        `the last one is ${rules.streamSeq}`,
      )
    case 'already_appended':
      return holds(hasAppended && error.lastSeq === known.seq && producer!.seq < known.seq, description)
    case 'producer_fenced':
      return holds(
        known !== undefined && error.producerEpoch === known.epoch && producer!.epoch < known.epoch,
        description,
      )
    case 'producer_gap': {
      const next = known === undefined ? 0 : isSameEpoch ? known.seq + 1 : undefined
      const isGap = next !== undefined && producer!.seq > next
      return holds(isGap && error.expectedSeq === next, description)
    }
    default:
      return holds(known !== undefined && producer!.epoch > known.epoch && producer!.seq !== 0, description)
  }
}
