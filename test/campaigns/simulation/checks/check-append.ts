import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import type { AppendOutcome } from '../../linearizability/operations.ts'
import { contradiction } from '../../linearizability/stream-model.ts'
import type { AppendAttempt, StoredPlace } from '../append-attempt.ts'
import type { Moment, StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { lastBatchOf } from '../write-rules.ts'
import { type Circumstances, checkFailure } from './check-failure.ts'
import { isWriteRefusal, writeRefusalContradiction } from './check-write-rules.ts'

/** Whether an ack says that the stream was closed before the command of the append. */
export function isClosedAgain({ conditions }: AppendAttempt, { duplicate }: AppendAck): boolean {
  return duplicate === true && conditions.producer === undefined
}

/** An acknowledged append is stored at the position in its ack. */
export function checkAck(history: StreamHistory, attempt: AppendAttempt, ack: AppendAck): void {
  if (isClosedAgain(attempt, ack)) {
    checkClosedAgain(history, attempt, ack)
    return
  }
  const { id, records } = attempt
  const { start, end, tail } = ack
  const place = placeOf(attempt, ack)
  if (place === undefined) throw new Violation(`${id} is acknowledged when it is stored`, 'it is not stored')
  checkIsOriginal(attempt, place, ack)
  const { log, seqNum } = place
  const endSeqNum = seqNum + records.length
  const expected = [seqNum, log.records[seqNum]!.timestamp, endSeqNum, log.records[endSeqNum - 1]!.timestamp]
  const reported = [start.seqNum, start.timestamp, end.seqNum, end.timestamp]
  if (reported.join() !== expected.join())
    throw new Violation(`the ack of ${id} contains ${expected.join()}`, reported.join())
  const wasTail = history.moments.some(
    (moment) =>
      moment.log === log &&
      moment.state.tail === tail.seqNum &&
      moment.tailTimestamp === tail.timestamp &&
      moment.rules.isClosed === (tail.closed ?? false),
  )
  if (!wasTail || tail.seqNum < endSeqNum) {
    throw new Violation(
      `the ack of ${id} contains a tail of the stream, from ${endSeqNum} on`,
      `${tail.seqNum}`,
    )
  }
  history.observeStored(place)
}

/** The batch of a producer may be stored in several incarnations of its stream. */
function placeOf({ places }: AppendAttempt, { start }: AppendAck): StoredPlace | undefined {
  return places.findLast(({ seqNum }) => seqNum === start.seqNum) ?? places.at(-1)
}

/** However often a batch is appended, one call stores it, and all others learn that it was stored before. */
function checkIsOriginal(attempt: AppendAttempt, { log }: StoredPlace, { duplicate }: AppendAck): void {
  const { id, originals, isSingle } = attempt
  if (duplicate) {
    if (isSingle) throw new Violation(`${id} is no duplicate: it was appended once`, 'it is one')
    return
  }
  if (originals.has(log)) throw new Violation(`${id} is acknowledged as stored by one call`, 'by two')
  originals.add(log)
}

function checkClosedAgain(history: StreamHistory, { id, since }: AppendAttempt, ack: AppendAck): void {
  const { start, end } = ack
  history.observe(
    'records',
    since,
    `${id} finds its stream closed`,
    `from ${start.seqNum} to ${end.seqNum}`,
    ({ log, state, rules }) => {
      if (log === undefined) return 'there is no stream'
      if (!rules.isClosed) return 'it is open'
      return end.seqNum === state.tail && start.seqNum === state.tail - 1
        ? undefined
        : `the tail is ${state.tail}`
    },
  )
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
  calledAt: number,
): AppendOutcome {
  const before = failedBefore(attempt)
  const outcome = before ?? outcomeOf(attempt, error, circumstances, calledAt)
  // An earlier call may have stored the batch of a producer.
  if (outcome.kind !== 'unknown' && attempt.stored !== undefined && attempt.isSingle) {
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

function outcomeOf(
  attempt: AppendAttempt,
  error: unknown,
  circumstances: Circumstances,
  calledAt: number,
): AppendOutcome {
  const { history } = circumstances
  if (isWriteRefusal(error)) {
    history.observe(
      'records',
      calledAt,
      `${attempt.id} is refused only by a rule of producers, closed streams or \`streamSeq\``,
      String(error),
      (moment) => writeRefusalContradiction(error, attempt, moment),
    )
    return { kind: 'not-made' }
  }
  const rejection = rejectionOf(error as HeadwaterError)
  if (rejection !== undefined) {
    const { id, operation } = attempt
    history.observe(
      'records',
      calledAt,
      `${id} is refused only when a condition does not hold`,
      String(error),
      (moment) =>
        moment.log === undefined
          ? 'there is no stream'
          : (duplicateIn(attempt, moment) ?? contradiction(moment.state, { operation, outcome: rejection })),
    )
    return rejection
  }
  if ((error as HeadwaterError).code === 'invalid') {
    checkMissingTimestamp(attempt, history, error as HeadwaterError)
    return { kind: 'not-made' }
  }
  return checkFailure(error, circumstances).mayHaveEffects ? { kind: 'unknown' } : { kind: 'not-made' }
}

/** Whether the last batch of its producer is this one, whatever its conditions say. */
function duplicateIn({ conditions: { producer } }: AppendAttempt, { rules }: Moment): string | undefined {
  const last = producer && lastBatchOf(rules, producer.id)
  return last !== undefined && last.epoch === producer?.epoch && last.seq >= producer.seq
    ? 'it is stored already'
    : undefined
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
