import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import type { AppendOutcome } from '../../linearizability/operations.ts'
import { contradiction } from '../../linearizability/stream-model.ts'
import type { AppendAttempt } from '../append-attempt.ts'
import type { StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { type Circumstances, checkFailure } from './check-failure.ts'

/** An acknowledged append is stored at the position in its ack. */
export function checkAck(
  history: StreamHistory,
  attempt: AppendAttempt,
  { start, end, tail }: AppendAck,
): void {
  const { id, records, stored } = attempt
  if (stored === undefined) throw new Violation(`${id} is acknowledged when it is stored`, 'it is not stored')
  const { log, seqNum } = stored
  const endSeqNum = seqNum + records.length
  const expected = [seqNum, log.records[seqNum]!.timestamp, endSeqNum, log.records[endSeqNum - 1]!.timestamp]
  const reported = [start.seqNum, start.timestamp, end.seqNum, end.timestamp]
  if (reported.join() !== expected.join())
    throw new Violation(`the ack of ${id} contains ${expected.join()}`, reported.join())
  const wasTail = history.moments.some(
    (moment) =>
      moment.log === log && moment.state.tail === tail.seqNum && moment.tailTimestamp === tail.timestamp,
  )
  if (!wasTail || tail.seqNum < endSeqNum) {
    throw new Violation(
      `the ack of ${id} contains a tail of the stream, from ${endSeqNum} on`,
      `${tail.seqNum}`,
    )
  }
  history.observeStored(attempt)
}

/** The acks of a session arrive in the order of the appends. */
export function checkAckOrder({ id, group }: AppendAttempt): void {
  for (const earlier of group?.attempts ?? []) {
    if (earlier.id === id) return
    if (earlier.status !== 'acknowledged') {
      throw new Violation(`${id} is acknowledged after ${earlier.id}`, `that one is ${earlier.status}`)
    }
  }
}

/** The outcome that a failed append reports must be true. */
export function outcomeOfFailure(
  attempt: AppendAttempt,
  error: unknown,
  circumstances: Circumstances,
): AppendOutcome {
  const before = failedBefore(attempt)
  const outcome = before ?? outcomeOf(attempt, error, circumstances)
  if (outcome.kind !== 'unknown' && attempt.stored !== undefined) {
    throw new Violation(`${attempt.id} leaves no trace: it failed with ${String(error)}`, 'it is stored')
  }
  return outcome
}

/**
 * Only the first failure of a group has a reason of its own. Appends after one without effect have no effect
 * either.
 */
function failedBefore({ group, id }: AppendAttempt): AppendOutcome | undefined {
  const earlier =
    group?.attempts.slice(
      0,
      group.attempts.findIndex((other) => other.id === id),
    ) ?? []
  const failed = earlier.filter(({ status }) => status !== 'acknowledged')
  if (failed.length === 0) return undefined
  return failed.some(({ status }) => status === 'not made') ? { kind: 'not-made' } : { kind: 'unknown' }
}

function outcomeOf(attempt: AppendAttempt, error: unknown, circumstances: Circumstances): AppendOutcome {
  const { history } = circumstances
  const rejection = rejectionOf(error as HeadwaterError)
  if (rejection !== undefined) {
    const { id, operation } = attempt
    history.observe(
      'records',
      attempt.since,
      `${id} is refused only when a condition does not hold`,
      String(error),
      (moment) =>
        moment.log === undefined
          ? 'there is no stream'
          : contradiction(moment.state, { operation, outcome: rejection }),
    )
    return rejection
  }
  if ((error as HeadwaterError).code === 'invalid') {
    checkMissingTimestamp(attempt, history, error as HeadwaterError)
    return { kind: 'not-made' }
  }
  return checkFailure(error, circumstances).mayHaveEffects ? { kind: 'unknown' } : { kind: 'not-made' }
}

function rejectionOf({
  code,
  seqNum,
  fencingToken,
}: HeadwaterError): (AppendOutcome & { kind: 'refused' }) | undefined {
  if (code === 'seq_num_mismatch') return { kind: 'refused', seqNum: seqNum! }
  return code === 'fencing_token_mismatch' ? { kind: 'refused', fencingToken: fencingToken! } : undefined
}

function checkMissingTimestamp(
  { id, records, since }: AppendAttempt,
  history: StreamHistory,
  error: HeadwaterError,
): void {
  const isMissing = records.some(({ timestamp }) => timestamp === undefined)
  history.observe(
    'config',
    since,
    `${id} is invalid only where it lacks a timestamp`,
    String(error),
    ({ config }) =>
      isMissing && config?.timestamping.mode === 'client-require' ? undefined : 'none is missing',
  )
}
