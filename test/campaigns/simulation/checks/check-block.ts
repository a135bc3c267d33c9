import type { SequencedRecord } from '../../../../src/index.ts'
import { commandOf } from '../../../../src/model/command.ts'
import type { StreamConfig } from '../../../../src/model/config.ts'
import { decodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import { afterAppend, contradiction } from '../../linearizability/stream-model.ts'
import { type AppendAttempt, attemptIdOf, closeId, type SentRecord } from '../append-attempt.ts'
import type { StoredLog } from '../stored-log.ts'
import type { StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { afterStoring, storingContradiction } from '../write-rules.ts'

/**
 * Checks a block that was added to a stream: its records are whole appends that were requested, each at its
 * position. Adds the resulting moment.
 */
export function checkBlock(
  history: StreamHistory,
  attempts: ReadonlyMap<string, AppendAttempt>,
  block: StoredBlock,
  head: Head,
  latestTime: number,
): void {
  const { now } = history
  const log = now.log!
  const records = decodeRecords(block.data)
  if (now.rules.isClosed)
    throw new Violation('a closed stream gets no more records', `record ${records[0]?.seqNum}`)
  checkPositions(records, now.state.tail, now.tailTimestamp, block)
  let { state } = now
  let { trimPoint, rules, tailTimestamp: lastTimestamp } = now
  for (let first = 0; first < records.length; ) {
    const attempt = attemptOf(attempts, history.name, records.slice(first))
    checkMayBeStored(attempt, history.name, log)
    const outcome = { kind: 'appended', start: state.tail, end: state.tail + attempt.records.length } as const
    const problem =
      storingContradiction(rules, attempt.conditions) ??
      contradiction(state, { operation: attempt.operation, outcome: { ...outcome, tail: outcome.end } })
    if (problem !== undefined)
      throw new Violation(`${attempt.id} is stored only when its conditions hold`, problem)
    attempt.places.push({ log, seqNum: state.tail })
    checkOrder(attempt, history.wasDeleted)
    for (const sent of attempt.records) {
      const record = records[first++]
      if (record === undefined) throw new Violation(`${attempt.id} is stored whole`, 'a part of it')
      const previous = lastTimestamp
      checkRecord(attempt, sent, record)
      checkTimestamp(now.config!, attempt, sent, record, previous, latestTime)
      lastTimestamp = record.timestamp
      if (sent.command?.kind === 'trim') {
        trimPoint = Math.max(trimPoint, Math.min(sent.command.seqNum, record.seqNum + 1))
      }
      log.records.push({
        ...record,
        meteredBytes: sent.meteredBytes,
        fence: sent.command?.kind === 'fence' ? sent.command.token : undefined,
        expiresAt: block.expiresAt,
        extendedTo: block.expiresAt,
        mayBeFreed: false,
        appendEnd: block.endSeqNum,
        isFreed: false,
      })
    }
    const { timestamp } = log.records[state.tail]!
    const start = { seqNum: state.tail, timestamp }
    state = afterAppend(state, attempt.operation)
    const end = { seqNum: state.tail, timestamp: log.timestamp }
    const place = { appendedAt: head.appendedAt, start, end }
    rules = afterStoring(rules, attempt.conditions, attempt.closes, place)
  }
  checkExpiry(now.config!, block, head)
  history.add({
    state,
    rules,
    tailTimestamp: log.timestamp,
    trimPoint,
    ...(trimPoint !== now.trimPoint && { trimmedAt: head.appendedAt }),
    appendedAt: head.appendedAt,
    writtenAt: head.appendedAt,
  })
}

/** Sequence numbers are dense, and timestamps never decrease. */
function checkPositions(
  records: readonly SequencedRecord[],
  tail: number,
  timestamp: number,
  block: StoredBlock,
): void {
  let last = timestamp
  records.forEach((record, index) => {
    if (record.seqNum !== tail + index) {
      throw new Violation(
        `the next record has the sequence number ${tail + index}`,
        `it has ${record.seqNum}`,
      )
    }
    if (record.timestamp < last) {
      throw new Violation(
        `record ${record.seqNum} has a timestamp from ${last} on`,
        `it has ${record.timestamp}`,
      )
    }
    last = record.timestamp
  })
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
    const id =
      headers.length === 1 && commandOf(headers, body)?.kind === 'close' ? closeId(stream) : undefined
    const attempt = attempts.get(id ?? attemptIdOf(body) ?? '')
    if (attempt !== undefined) return attempt
  }
  throw new Violation('every stored record was appended by a client', `record ${records[0]!.seqNum} was not`)
}

function checkMayBeStored(
  { id, stream, status, stored, conditions }: AppendAttempt,
  name: string,
  log: StoredLog,
): void {
  // A stream that was deleted and created again does not know the producers of the one before.
  const isOfProducer = conditions.producer !== undefined
  if (stored !== undefined && (stored.log === log || !isOfProducer))
    throw new Violation(`${id} is stored once`, `at ${stored.seqNum} and once more`)
  if (stream !== name) throw new Violation(`${id} is stored in \`${stream}\``, `in \`${name}\``)
  if (status === 'pending' || status === 'unknown' || (isOfProducer && stored !== undefined)) return
  throw new Violation(`${id}, which is ${status}, is never stored later`, 'it is stored')
}

/** In a session, no append follows one that was not stored. Single appends of one caller keep their order. */
function checkOrder(attempt: AppendAttempt, wasDeleted: boolean): void {
  const { id, group, turn, stored } = attempt
  const { log, seqNum } = stored!
  for (const earlier of group?.attempts ?? []) {
    if (earlier === attempt) break
    const isBefore =
      earlier.stored !== undefined && earlier.stored.log === log && earlier.stored.seqNum < seqNum
    if (!isBefore)
      throw new Violation(`${id} is stored after ${earlier.id}, which was submitted earlier`, 'without it')
  }
  // A caller that finds its stream deleted looks it up again, and its later appends may arrive first.
  if (turn === undefined || wasDeleted) return
  const last = log.lastTurn.get(turn.caller) ?? -1
  if (turn.number < last)
    throw new Violation(`${id} is stored before the later appends of its caller`, 'it is stored after one')
  log.lastTurn.set(turn.caller, turn.number)
}

function checkRecord(
  { id }: AppendAttempt,
  sent: SentRecord,
  { seqNum, headers, body }: SequencedRecord,
): void {
  const isSame =
    Buffer.compare(sent.body, body) === 0 &&
    sent.headers.length === headers.length &&
    sent.headers.every((header, index) =>
      header.every((part, i) => Buffer.compare(part, headers[index]![i]!) === 0),
    )
  if (!isSame) throw new Violation(`record ${seqNum} is the next one of ${id}`, 'another one')
}

/** The timestamp of a record, given or not. The time of the engine's clock is known within limits. */
function checkTimestamp(
  { timestamping: { mode, uncapped } }: StreamConfig,
  { clocks }: AppendAttempt,
  { timestamp: given }: SentRecord,
  { seqNum, timestamp }: SequencedRecord,
  previous: number,
  latestTime: number,
): void {
  const timestampAt = (now: number) => {
    if (mode === 'arrival' || given === undefined) return now
    return uncapped ? given : Math.min(given, now)
  }
  const least = Math.max(previous, timestampAt(Math.min(...clocks.map(({ min }) => min))))
  const most = Math.max(previous, timestampAt(latestTime))
  const isRefused = mode === 'client-require' && given === undefined
  if (!isRefused && timestamp >= least && timestamp <= most) return
  throw new Violation(
    `record ${seqNum} (${mode}, ${uncapped ? 'uncapped' : 'capped'}, given ${given}) ${isRefused ? 'is refused' : `gets a timestamp from ${least} to ${most}`}`,
    `${timestamp}`,
  )
}

function checkExpiry({ retentionPolicy }: StreamConfig, { expiresAt }: StoredBlock, head: Head): void {
  const expected = retentionPolicy === 'infinite' ? null : head.appendedAt + retentionPolicy.ageSeconds * 1000
  if (expiresAt === expected) return
  throw new Violation(`what was appended at ${head.appendedAt} expires at ${expected}`, `at ${expiresAt}`)
}
