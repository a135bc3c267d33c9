import type { SequencedRecord } from '../../../../src/index.ts'
import type { StreamConfig } from '../../../../src/model/config.ts'
import { commandOf } from '../../../../src/model/record.ts'
import { decodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import { Violation } from '../../harness/violation.ts'
import type { StoredLog, StreamHistory } from '../../model/stream-history.ts'
import { afterAppend, verdictOn } from '../../model/stream-state.ts'
import { type AppendAttempt, attemptIdOf, closeId, type SentRecord } from '../append-attempt.ts'
import type { World } from '../world.ts'

/** The number of the last single append of each caller, by log. */
const lastTurns = new WeakMap<StoredLog, Map<object, number>>()

/**
 * Checks a block that was added to a stream: its records are whole appends that were requested, each at its
 * position. Adds the resulting moment.
 */
export function checkBlock(
  { observer: { attempts }, latestTime, time }: World,
  history: StreamHistory,
  block: StoredBlock,
  head: Head,
): void {
  const { now } = history
  const { appendedAt } = head
  const config = now.config!
  const log = now.log!
  const records = decodeRecords(block.data)
  checkPositions(records, now.state.tail, now.tailTimestamp, block)
  let { state, trimPoint, tailTimestamp } = now
  for (let first = 0; first < records.length; ) {
    const attempt = attemptOf(attempts, history.name, records.slice(first))
    checkMayBeStored(attempt, history.name, log)
    const verdict = verdictOn(state, attempt)
    if (verdict.kind !== 'stored')
      throw new Violation(`${attempt.id} is stored only when its conditions hold`, JSON.stringify(verdict))
    attempt.places.push({ log, seqNum: state.tail })
    checkOrder(attempt, history.wasDeleted)
    for (const sent of attempt.records) {
      const record = records[first++]
      if (record === undefined) throw new Violation(`${attempt.id} is stored whole`, 'a part of it')
      if (!isSame(sent, record))
        throw new Violation(`record ${record.seqNum} is the next one of ${attempt.id}`, 'another one')
      checkTimestamp(config, sent, record, tailTimestamp, latestTime)
      tailTimestamp = record.timestamp
      if (sent.command?.kind === 'trim')
        trimPoint = Math.max(trimPoint, Math.min(sent.command.seqNum, record.seqNum + 1))
      log.add(record, block.expiresAt)
    }
    const start = { seqNum: state.tail, timestamp: log.records[state.tail]!.timestamp }
    const end = { seqNum: state.tail + attempt.count, timestamp: log.timestamp }
    state = afterAppend(state, attempt, { appendedAt, start, end })
  }
  const expiresAt = expiryOf(config, appendedAt)
  if (block.expiresAt !== expiresAt)
    throw new Violation(`what was appended at ${appendedAt} expires at ${expiresAt}`, `at ${block.expiresAt}`)
  log.trimPoint = trimPoint
  history.add(time.now(), {
    state,
    tailTimestamp,
    trimPoint,
    ...(trimPoint !== now.trimPoint && { trimmedAt: appendedAt }),
    appendedAt,
    writtenAt: appendedAt,
  })
}

export function expiryOf({ retentionPolicy }: StreamConfig, appendedAt: number): number | null {
  return retentionPolicy === 'infinite' ? null : appendedAt + retentionPolicy.ageSeconds * 1000
}

/** Sequence numbers are dense, and timestamps never decrease. */
function checkPositions(
  records: readonly SequencedRecord[],
  tail: number,
  timestamp: number,
  block: StoredBlock,
): void {
  let last = timestamp
  for (const [index, record] of records.entries()) {
    const seqNum = tail + index
    if (record.seqNum !== seqNum)
      throw new Violation(`the next record has the sequence number ${seqNum}`, `it has ${record.seqNum}`)
    if (record.timestamp < last)
      throw new Violation(`record ${seqNum} has a timestamp from ${last} on`, `it has ${record.timestamp}`)
    last = record.timestamp
  }
  const expected = [tail, tail + records.length, records[0]?.timestamp, last].join()
  const reported = [block.firstSeqNum, block.endSeqNum, block.firstTimestamp, block.lastTimestamp].join()
  if (reported !== expected) throw new Violation(`the metadata of the block is ${expected}`, reported)
}

function attemptOf(
  attempts: ReadonlyMap<string, AppendAttempt>,
  stream: string,
  records: readonly SequencedRecord[],
): AppendAttempt {
  for (const { body, headers } of records) {
    const isClose = headers.length === 1 && commandOf(headers, body)?.kind === 'close'
    const attempt = attempts.get(isClose ? closeId(stream) : (attemptIdOf(body) ?? ''))
    if (attempt !== undefined) return attempt
  }
  throw new Violation('every stored record was appended by a client', `record ${records[0]!.seqNum} was not`)
}

function checkMayBeStored(attempt: AppendAttempt, name: string, log: StoredLog): void {
  const { id, stream, status, stored, conditions } = attempt
  // A stream that was deleted and created again does not know the producers of the one before.
  const isOfProducer = conditions.producer !== undefined
  if (stored !== undefined && (stored.log === log || !isOfProducer))
    throw new Violation(`${id} is stored once`, `at ${stored.seqNum} and once more`)
  if (stream !== name) throw new Violation(`${id} is stored in \`${stream}\``, `in \`${name}\``)
  if (status === 'pending' || status === 'unknown' || (isOfProducer && stored !== undefined)) return
  throw new Violation(`${id}, which is ${status}, is never stored later`, 'it is stored')
}

/** No append of a session follows one that was not stored. Single appends of a caller keep their order. */
function checkOrder(attempt: AppendAttempt, wasDeleted: boolean): void {
  const { id, group, turn, stored } = attempt
  const { log, seqNum } = stored!
  for (const earlier of group?.attempts ?? []) {
    if (earlier === attempt) break
    if (earlier.stored?.log !== log || earlier.stored.seqNum >= seqNum)
      throw new Violation(`${id} is stored after ${earlier.id}, which was submitted earlier`, 'without it')
  }
  // A caller that finds its stream deleted looks it up again, and its later appends may arrive first.
  if (turn === undefined || wasDeleted) return
  const last = lastTurns.get(log) ?? new Map<object, number>()
  lastTurns.set(log, last)
  if (turn.number < (last.get(turn.caller) ?? -1))
    throw new Violation(`${id} is stored before the later appends of its caller`, 'it is stored after one')
  last.set(turn.caller, turn.number)
}

/** Whether two records have the same content. */
export function isSame(a: Pick<SentRecord, 'headers' | 'body'>, b: typeof a): boolean {
  const parts = ({ headers, body }: typeof a) => [...headers.flat(), body]
  const others = parts(b)
  return (
    parts(a).length === others.length &&
    parts(a).every((part, index) => Buffer.compare(part, others[index]!) === 0)
  )
}

/** The timestamp of a record, given or not. The time of the engine's clock is known within limits. */
function checkTimestamp(
  { timestamping: { mode, uncapped } }: StreamConfig,
  { timestamp: given }: SentRecord,
  { seqNum, timestamp }: SequencedRecord,
  previous: number,
  latestTime: number,
): void {
  const isGiven = mode !== 'arrival' && given !== undefined
  if (mode === 'client-require' && !isGiven)
    throw new Violation(`record ${seqNum}, which has no timestamp, is refused`, `${timestamp}`)
  const most = Math.max(previous, isGiven && (uncapped || given < latestTime) ? given : latestTime)
  const least = isGiven && uncapped ? most : previous
  if (timestamp >= least && timestamp <= most) return
  throw new Violation(
    `record ${seqNum} (${mode}, given ${given}) has a timestamp up to ${most}`,
    `${timestamp}`,
  )
}
