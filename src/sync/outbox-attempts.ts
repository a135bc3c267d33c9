import {
  attemptRecord,
  type BatchAttempt,
  type LogRecord,
  type OutboxEntry,
  type OutboxState,
} from './outbox-log.ts'
import { type AfterRefusal, entriesToSend } from './outbox-plan.ts'

/**
 * The batches that an outbox sends, as those of an idempotent producer (docs/protocol.md "Producers").
 *
 * What a batch contains is written to the log before it is sent, and a number means the same batch for ever:
 * if it is sent again, by whichever tab, the server stores it once. Batch 0 of an epoch is conditional on the
 * tail, after everything below was examined. So it needs no server that knows producers, and whatever was
 * sent in an earlier epoch is either found or comes too late. A later batch has no such condition: it is only
 * made once such a server has acknowledged the one before.
 */

/** A batch to send. */
export interface NextAttempt extends Pick<BatchAttempt, 'epoch' | 'seq'> {
  readonly entries: readonly OutboxEntry[]
  /** Whether the log has it. */
  readonly isNoted: boolean
}

/** What a sender knows about the last attempt, beside the log. */
export interface AttemptKnowledge {
  readonly afterRefusal: AfterRefusal
  /** Entries are sent one by one, to find the one that the server refuses. */
  readonly isSingle: boolean
  /** The place of the attempt that a server with producers has acknowledged, so that it can be continued. */
  readonly acknowledgedAt: number | undefined
  /**
   * The place of an attempt that need not be made again: the server has rejected it. Batch 0 of an epoch is
   * made again if it would be the same.
   */
  readonly abandonedAt: number | undefined
  /** The lowest epoch that the server may accept. */
  readonly epochMin: number
}

/** Returns the batch to send next; undefined if there is nothing to send. */
export function nextAttempt(state: OutboxState, knowledge: AttemptKnowledge): NextAttempt | undefined {
  const { afterRefusal, isSingle, acknowledgedAt, abandonedAt, epochMin } = knowledge
  const { attempt } = state
  const chosen = entriesToSend(state, afterRefusal, isSingle)
  if (chosen.length === 0) return undefined
  if (attempt === undefined) return { epoch: epochMin, seq: 0, entries: chosen, isNoted: false }
  const { epoch, seq, at } = attempt
  if (at === acknowledgedAt) return { epoch, seq: seq + 1, entries: chosen, isNoted: false }
  const entries = waitingEntries(state, attempt)
  const isWhole = entries.length === attempt.numbers.length && epoch >= epochMin
  const isSame = at !== abandonedAt || (seq === 0 && isOf(attempt, chosen))
  if (isWhole && isSame) return { epoch, seq, entries, isNoted: true }
  return { epoch: Math.max(epoch + 1, epochMin), seq: 0, entries: chosen, isNoted: false }
}

/** Returns the entries of an attempt that wait for the server, or all that do if there is no attempt. */
export function waitingEntries(
  { entries }: OutboxState,
  attempt: Pick<BatchAttempt, 'numbers'> | undefined,
): readonly OutboxEntry[] {
  const numbers = attempt?.numbers ?? [...entries.keys()]
  return numbers.flatMap((number) => {
    const entry = entries.get(number)
    return entry === undefined || entry.error !== undefined ? [] : [entry]
  })
}

/** Returns an attempt as a record that follows a state of the log. */
export function attemptNote(
  { epoch, seq, entries }: Omit<NextAttempt, 'isNoted'>,
  state: OutboxState,
): LogRecord {
  const numbers = entries.map(({ number }) => number)
  return attemptRecord({ epoch, seq, numbers, after: state.attempt?.at ?? -1 })
}

function isOf({ numbers }: BatchAttempt, entries: readonly OutboxEntry[]): boolean {
  return entries.length === numbers.length && entries.every(({ number }, index) => number === numbers[index])
}
