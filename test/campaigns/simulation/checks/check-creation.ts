import type { HeadwaterError, StreamInfo } from '../../../../src/index.ts'
import type { StreamConfigInput } from '../../../../src/model/config.ts'
import { commandOf } from '../../../../src/model/record.ts'
import { decodeRecords } from '../../../../src/storage/block-codec.ts'
import type { Head, StoredBlock } from '../../../../src/storage/contract.ts'
import type { StreamDocument } from '../../../../src/storage/documents.ts'
import { Violation } from '../../harness/violation.ts'
import { type Moment, StoredLog, type StreamHistory } from '../../model/stream-history.ts'
import { EMPTY_STREAM } from '../../model/stream-state.ts'
import type { AppendAttempt, AttemptStatus } from '../append-attempt.ts'
import { isSame } from './check-block.ts'
import { type Circumstances, checkFailure } from './check-failure.ts'

/** The name of the metadata by which the stored streams of requests are recognized. */
export const REQUEST = 'request'

/** The creation of a stream with more than a configuration. */
export interface CreationRequest {
  /** Stored in the metadata of the stream. */
  readonly id: string
  readonly stream: string
  readonly config: StreamConfigInput
  readonly expiry: { readonly at: number } | { readonly idleSeconds: number } | undefined
  readonly fork: { readonly stream: string; readonly seqNum: number | undefined } | undefined
  /** The observed version of the source of the fork at the call. */
  readonly sourceSince: number
  /** The first records after those of the fork. */
  readonly first: AppendAttempt | undefined
  status: AttemptStatus
}

/** A stream that appears was requested, with the metadata, expiry and source that it has. */
export function checkNewDocument(
  { name, metadata, expiry, forkOf }: StreamDocument,
  requests: ReadonlyMap<string, CreationRequest>,
): CreationRequest | undefined {
  const request = requests.get(metadata?.[REQUEST] ?? '')
  const found = JSON.stringify({ stream: name, metadata, expiry, forkOf: forkOf?.stream })
  const expected = JSON.stringify({
    stream: request?.stream ?? name,
    metadata: request && { [REQUEST]: request.id },
    expiry: request?.expiry,
    forkOf: request?.fork?.stream,
  })
  if (found !== expected) throw new Violation(`a stream is created as requested: ${expected}`, found)
  if (request === undefined || request.status === 'pending' || request.status === 'unknown') return request
  throw new Violation(`${request.id}, which is ${request.status}, creates no stream later`, 'it does')
}

/**
 * A fork begins with the records of its source below the requested position, or below the tail at one moment
 * of the call, except for first ones that are trimmed or have expired meanwhile. Returns its beginning.
 */
export function checkFork(
  { logId, forkOf }: StreamDocument,
  { id, first, fork, sourceSince }: CreationRequest,
  source: StreamHistory,
  { tail, trimPoint }: Head,
  blocks: readonly StoredBlock[],
): Pick<Moment, 'log' | 'state' | 'tailTimestamp' | 'trimPoint'> {
  const end = tail.seqNum - (first?.count ?? 0)
  const start = Math.min(trimPoint, end)
  const moments = source.moments.filter(
    ({ log, version }) => log?.id === forkOf!.logId && version >= sourceSince,
  )
  const ends = moments.map(({ state, trimPoint: trimmedTo }) => {
    const wanted = fork!.seqNum ?? state.tail
    // The command that closed the source is not copied.
    return state.isClosed && wanted === state.tail ? Math.max(wanted - 1, trimmedTo) : wanted
  })
  if (!ends.includes(end))
    throw new Violation(
      `${id} copies the records of \`${source.name}\` below ${fork!.seqNum ?? 'its tail'}`,
      `${end}`,
    )
  const copies = new Map(
    blocks.flatMap(({ data, expiresAt }) =>
      decodeRecords(data).map((record) => [record.seqNum, { record, expiresAt }]),
    ),
  )
  const log = new StoredLog(logId)
  let fencingToken = ''
  for (const original of moments[0]!.log!.records.slice(0, end)) {
    const { seqNum, headers, body } = original
    const copy = copies.get(seqNum)
    log.add(original, copy?.expiresAt ?? null)
    log.records[seqNum]!.isFreed = copy === undefined
    if (seqNum < start) {
      const mayBeGone = original.isFreed || original.extendedTo !== null || seqNum < moments.at(-1)!.trimPoint
      if (!mayBeGone) throw new Violation(`${id} begins with the first record of its source`, `${start}`)
      continue
    }
    const command = commandOf(headers, body)
    if (command?.kind === 'fence') fencingToken = command.token
    if (
      copy !== undefined &&
      (!isSame(original, copy.record) || original.timestamp !== copy.record.timestamp)
    )
      throw new Violation(`record ${seqNum} of ${id} is that of its source`, 'another one')
  }
  log.trimPoint = start
  const state = { ...EMPTY_STREAM, tail: end, fencingToken }
  return { log, state, tailTimestamp: end > start ? log.timestamp : 0, trimPoint: start }
}

/** A creation resolves when its stream has appeared, to what was requested. */
export function checkCreated(
  history: StreamHistory,
  since: number,
  { id, expiry }: CreationRequest,
  info: StreamInfo,
): void {
  history.observe('records', since, [`${id} creates a stream`, 'it resolved'], ({ log, version }) =>
    log !== undefined && history.moments[version - 1]?.log !== log ? undefined : 'none',
  )
  const at = info.expiry && 'at' in info.expiry ? { at: info.expiry.at.getTime() } : info.expiry
  const found = JSON.stringify([info.metadata, at])
  const expected = JSON.stringify([{ [REQUEST]: id }, expiry])
  if (found !== expected) throw new Violation(`${id} resolves to ${expected}`, found)
}

const OF_SOURCE = ['stream_not_found', 'stream_deleted', 'stream_deletion_pending']

/** Checks that there was a reason for a failure. Returns whether the stream may appear nevertheless. */
export function checkCreationFailure(
  error: unknown,
  { fork, id, sourceSince }: CreationRequest,
  circumstances: Circumstances,
  source: StreamHistory | undefined,
): boolean {
  const { code, field, mayHaveEffects } = error as HeadwaterError
  const moments = source?.moments.slice(sourceSince) ?? []
  if (code === 'invalid' && field === 'seqNum') {
    if (moments.some(({ state }) => fork!.seqNum! > state.tail)) return false
    throw new Violation(`${id} is invalid only beyond the tail of its source`, String(error))
  }
  if (code === 'history_trimmed') {
    const isCut = ({ log, trimPoint }: Moment) =>
      trimPoint > 0 || log?.records.some(({ extendedTo }) => extendedTo !== null)
    if (moments.some(isCut)) return false
    throw new Violation(`${id} fails only if records of its source were removed`, String(error))
  }
  if (OF_SOURCE.includes(code) && moments.some(({ log }) => log === undefined)) return mayHaveEffects
  return checkFailure(error, circumstances).mayHaveEffects
}

type Documents = ReadonlyMap<string, StreamDocument | undefined>

/**
 * Metadata, expiry and source of a stream never change, the name of a deleted stream stays reserved as long
 * as it has forks, and each stream counts its forks.
 */
export function checkNames(before: Documents, after: Documents): void {
  const forksOf = (logId: string) =>
    [...after.values()].filter((fork) => fork?.forkOf?.logId === logId).length
  const lasting = ({ metadata, expiry, forkOf, createdAt }: StreamDocument) =>
    JSON.stringify({ metadata, expiry, forkOf, createdAt })
  for (const [name, document] of after) {
    const earlier = before.get(name)
    if (earlier !== undefined && document?.logId === earlier.logId) {
      const [kept, found] = [lasting(earlier), lasting(document)]
      if (kept !== found) throw new Violation(`\`${name}\` keeps ${kept}`, found)
      if (earlier.deletedAt !== undefined && document.deletedAt === undefined)
        throw new Violation(`\`${name}\` stays deleted`, 'it is there')
    } else if (earlier !== undefined && forksOf(earlier.logId) > 0)
      throw new Violation(`the name of \`${name}\` is reserved for its forks`, 'it is free')
    const forks = document === undefined ? 0 : forksOf(document.logId)
    if ((document?.forks ?? 0) !== forks)
      throw new Violation(`\`${name}\` has ${forks} forks`, `${document?.forks ?? 0}`)
  }
}
