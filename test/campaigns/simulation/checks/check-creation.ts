import type { HeadwaterError, StreamInfo } from '../../../../src/index.ts'
import type { StreamConfig } from '../../../../src/model/config.ts'
import { decodeRecords, encodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import type { StreamDocument } from '../../../../src/storage/documents.ts'
import { EMPTY_STREAM } from '../../linearizability/stream-model.ts'
import { type CreationRequest, REQUEST } from '../creation-request.ts'
import { StoredLog, type StoredRecord } from '../stored-log.ts'
import type { Moment, StreamHistory } from '../stream-history.ts'
import { Violation } from '../violation.ts'
import { type Circumstances, checkFailure } from './check-failure.ts'

/** A stream that appears was requested, with the metadata, expiry and source that it has. */
export function checkNewDocument(
  { name, metadata, expiry, forkOf }: StreamDocument,
  requests: ReadonlyMap<string, CreationRequest>,
): CreationRequest | undefined {
  const request = requests.get(metadata?.[REQUEST] ?? '')
  const found = JSON.stringify({ metadata, expiry, forkOf: forkOf?.stream })
  if (request === undefined) {
    if (metadata === undefined && expiry === undefined && forkOf === undefined) return undefined
    throw new Violation(`\`${name}\` has the metadata, expiry and source of a request`, found)
  }
  const { id, stream, fork } = request
  const expected = JSON.stringify({
    metadata: { [REQUEST]: id },
    expiry: request.expiry,
    forkOf: fork?.stream,
  })
  if (stream !== name || found !== expected)
    throw new Violation(`\`${stream}\` is created by ${id} with ${expected}`, `\`${name}\` with ${found}`)
  if (request.status !== 'pending' && request.status !== 'unknown')
    throw new Violation(`${id}, which is ${request.status}, creates no stream later`, 'it does')
  return request
}

/** What a fork begins with, before the first records of its own. */
interface ForkBeginning {
  readonly log: StoredLog
  readonly moment: Pick<Moment, 'state' | 'tailTimestamp' | 'trimPoint'>
}

/**
 * A fork begins with exactly the records of its source: those below the requested position, or below the tail
 * at one moment of the call. Only its first ones may have been removed meanwhile.
 */
export function checkFork(
  document: StreamDocument,
  request: CreationRequest,
  source: StreamHistory,
  stored: { readonly head: Head; readonly blocks: readonly StoredBlock[] },
  latest: { readonly latestTime: number; readonly deletionTime: number },
): ForkBeginning {
  const { head, blocks } = stored
  const { id, first } = request
  const end = head.tail.seqNum - (first?.records.length ?? 0)
  const start = Math.min(head.trimPoint, end)
  const moments = source.moments.filter(
    ({ log, version }) => log?.id === document.forkOf!.logId && version >= request.sourceSince,
  )
  const removed = { trimPoint: moments.at(-1)?.trimPoint ?? 0, latestTime: latest.latestTime }
  const problems = moments.map((moment) => prefixContradiction(request, moment, start, end, removed))
  if (!problems.includes(undefined)) {
    throw new Violation(
      `${id} copies exactly the records of \`${source.name}\` below ${request.fork!.seqNum ?? 'its tail'}`,
      [`${start} to ${end}`, ...problems.slice(-4)].join('; '),
    )
  }
  const log = new StoredLog(document.logId)
  const copies = new Map(
    blocks.flatMap((block) => decodeRecords(block.data).map((record) => [record.seqNum, { record, block }])),
  )
  let fencingToken = ''
  for (const original of moments[0]!.log!.records.slice(0, end)) {
    const copy = copies.get(original.seqNum)
    log.records.push(copyOf(original, copy?.block, head))
    if (original.seqNum < start) continue
    if (original.fence !== undefined) fencingToken = original.fence
    if (copy === undefined) checkMayBeGone(document, original, latest.deletionTime)
    else if (!isSame(original, copy.record))
      throw new Violation(`record ${original.seqNum} of ${id} is that of its source`, 'another one')
  }
  const tailTimestamp = end > start ? log.timestamp : 0
  return {
    log,
    moment: { state: { ...EMPTY_STREAM, tail: end, fencingToken }, tailTimestamp, trimPoint: start },
  }
}

/**
 * Returns why a fork requested at this moment cannot have these records, as a clause. Its first records may
 * have been removed after that moment: trimmed, or expired.
 */
function prefixContradiction(
  { fork }: CreationRequest,
  { log, state, rules, trimPoint }: Moment,
  start: number,
  end: number,
  removed: { readonly trimPoint: number; readonly latestTime: number },
): string | undefined {
  const wanted = fork!.seqNum ?? state.tail
  if (wanted > state.tail) return `the tail is ${state.tail}`
  // The command that closed the source is not copied.
  const last = rules.isClosed && wanted === state.tail ? Math.max(wanted - 1, trimPoint) : wanted
  if (end !== last) return `the records end at ${last}`
  if (start < trimPoint) return `the records begin at ${trimPoint}`
  const isMissing = ({ seqNum, extendedTo, isFreed }: StoredRecord) =>
    isFreed || seqNum < removed.trimPoint || (extendedTo !== null && extendedTo <= removed.latestTime)
  const omitted = log!.records.slice(trimPoint, start).find((record) => !isMissing(record))
  return omitted && `record ${omitted.seqNum} is there`
}

function copyOf(original: StoredRecord, block: StoredBlock | undefined, head: Head): StoredRecord {
  const expiresAt = block?.expiresAt ?? null
  const isFreed = block === undefined
  const appendEnd = block?.endSeqNum ?? head.tail.seqNum
  return { ...original, expiresAt, extendedTo: expiresAt, appendEnd, mayBeFreed: false, isFreed }
}

/** A copy may have expired before its stream appeared. */
function checkMayBeGone(
  { config, createdAt }: StreamDocument,
  { seqNum }: StoredRecord,
  deletionTime: number,
): void {
  const expiresAt = expiryOf(config, createdAt)
  if (expiresAt === null || expiresAt > deletionTime)
    throw new Violation(`record ${seqNum} of the fork is there`, 'it is gone')
}

function expiryOf({ retentionPolicy }: StreamConfig, appendedAt: number): number | null {
  return retentionPolicy === 'infinite' ? null : appendedAt + retentionPolicy.ageSeconds * 1000
}

/**
 * Returns the first records of a stream as they were stored, all of them freed before the stream appeared.
 * Throws if they have not expired.
 */
export function expiredFirstRecords(
  { name, now: { log, config, state } }: StreamHistory,
  { tail, appendedAt }: Head,
  deletionTime: number,
): StoredBlock {
  const sent = log!.creation?.first?.records ?? []
  const expiresAt = expiryOf(config!, appendedAt)
  const isWhole = state.tail + sent.length === tail.seqNum
  if (!isWhole || expiresAt === null || expiresAt > deletionTime)
    throw new Violation(
      `the records of \`${name}\` from ${state.tail} to ${tail.seqNum} are there`,
      `none, and they expire at ${expiresAt}`,
    )
  // The records of a request all have the same timestamp.
  const { timestamp } = tail
  const records = sent.map(({ headers, body }, index) => ({
    seqNum: state.tail + index,
    timestamp,
    headers,
    body,
  }))
  return {
    firstSeqNum: state.tail,
    endSeqNum: tail.seqNum,
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    meteredBytes: sent.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    expiresAt,
    data: encodeRecords(records),
  }
}

function isSame(a: Pick<StoredRecord, 'timestamp' | 'body' | 'headers'>, b: typeof a): boolean {
  return (
    a.timestamp === b.timestamp &&
    Buffer.compare(a.body, b.body) === 0 &&
    a.headers.length === b.headers.length &&
    a.headers.every((header, i) => header.every((part, j) => Buffer.compare(part, b.headers[i]![j]!) === 0))
  )
}

/** A creation resolves when its stream has appeared, to what was requested. */
export function checkCreated(
  history: StreamHistory,
  since: number,
  { id, expiry }: CreationRequest,
  info: StreamInfo,
): void {
  history.observe('records', since, `${id} creates a stream`, 'it resolved', ({ log, version }) =>
    log?.creation?.id === id && history.moments[version - 1]?.log !== log ? undefined : 'another one',
  )
  const at = info.expiry && 'at' in info.expiry ? { at: info.expiry.at.getTime() } : info.expiry
  const found = JSON.stringify([info.metadata, at])
  const expected = JSON.stringify([{ [REQUEST]: id }, expiry])
  if (found !== expected) throw new Violation(`${id} resolves to ${expected}`, found)
}

/** Checks that there was a reason for a failure. Returns whether the stream may appear nevertheless. */
export function checkCreationFailure(
  error: unknown,
  request: CreationRequest,
  circumstances: Circumstances & { readonly source: StreamHistory | undefined },
): boolean {
  const { code, field, mayHaveEffects } = error as HeadwaterError
  const { source } = circumstances
  const { fork, id } = request
  const observeSource = (contradiction: (moment: Moment) => string | undefined) => {
    if (source === undefined) throw new Violation(`${id} is no fork`, String(error))
    source.observe('records', request.sourceSince, `${id} has a source`, String(error), contradiction)
    return false
  }
  if (code === 'invalid' && field === 'seqNum')
    return observeSource(({ state }) =>
      fork!.seqNum! > state.tail ? undefined : `the tail is ${state.tail}`,
    )
  if (code === 'history_trimmed') {
    return observeSource(({ log, trimPoint }) =>
      trimPoint > 0 || log?.records.some(({ extendedTo }) => extendedTo !== null) ? undefined : 'it is whole',
    )
  }
  const isOfSource = ['stream_not_found', 'stream_deleted', 'stream_deletion_pending'].includes(code)
  const isChanged = source?.moments.slice(request.sourceSince).some(({ log }) => log === undefined)
  if (isOfSource && isChanged) return mayHaveEffects
  return checkFailure(error, circumstances).mayHaveEffects
}
