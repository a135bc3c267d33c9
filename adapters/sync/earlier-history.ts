import type { CallOptions } from '../../src/api/call-options.ts'
import type { RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, invalid, isStreamMissing } from '../../src/model/errors.ts'
import { historyQuery, type ReadQuery } from '../../src/model/read-query.ts'
import {
  assertInteger,
  assertMembers,
  assertSignal,
  type MembersOf,
  millisecondsOf,
} from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { equalRecords } from '../../src/sync/copy-end.ts'
import { codeOf } from '../../src/sync/errors.ts'
import { ChainCursor, type ChainPart } from './chain-cursor.ts'
import {
  deleteIfPresent,
  dropEarlier,
  earlierSegments,
  firstSeqNum,
  recordAt,
  segmentStream,
} from './copy-streams.ts'
import { COPY_CONFIG, type LocalCopy } from './local-copy.ts'
import { assertStart, type MirrorStart } from './mirror-start.ts'
import { copyStart, isContinued, replaceCopy } from './open-copy.ts'
import type { OutboxLog } from './outbox-log.ts'

const SENDER = new LazyModule('the code that sends', () => import('./outbox-sender.ts'))

/** How often a fetch is tried again while others fetch the same records. */
const ATTEMPTS_MAX = 10

/** Options of `fetchEarlier`. */
export interface FetchEarlierOptions extends CallOptions {
  /** The number of records to store, at least 1. */
  readonly count: number
}

/** Options of `restart`. */
export interface RestartOptions extends CallOptions {
  /** The start of the new copy. By default that of the mirror. */
  readonly from?: MirrorStart | undefined
}

const FETCH_EARLIER_OPTIONS: MembersOf<FetchEarlierOptions> = { count: assertInteger, signal: assertSignal }
const RESTART_OPTIONS: MembersOf<RestartOptions> = { from: assertStart, signal: assertSignal }

/** Throws `invalid` for options that are not valid. */
export function assertFetch(options: FetchEarlierOptions): void {
  assertMembers(options, FETCH_EARLIER_OPTIONS, 'options')
  if (!(options.count > 0)) throw invalid('`count` must be at least 1', 'count')
}

/** Throws `invalid` for options that are not valid. */
export function assertRestart(options: RestartOptions): void {
  assertMembers(options, RESTART_OPTIONS, 'options')
}

/** The outcome of `fetchEarlier`. */
export interface EarlierRecords {
  /** The number of records that are stored now and were not before; 0 if the remote stream has none. */
  readonly count: number
  /** The sequence number of the first record on this device. */
  readonly start: number
}

/** Stores up to `count` records before the first one on this device. */
export async function fetchEarlier(
  remote: Stream,
  local: Stream,
  count: number,
  signal: AbortSignal,
): Promise<EarlierRecords> {
  signal.throwIfAborted()
  let failure: unknown
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    try {
      const fetched = await fetchOnce(remote, local, count, signal)
      if (fetched !== undefined) return fetched
      failure = new HeadwaterError('unavailable', 'the copy was replaced meanwhile')
    } catch (error) {
      failure = error
      const { cause } = Object(error) as { readonly cause?: unknown }
      const isRace = [error, cause].some((one) => {
        const code = codeOf(one)
        return code === 'seq_num_mismatch' || code === 'resource_already_exists'
      })
      if (!isRace) break
    }
  }
  throw failure
}

/** Resolves to undefined if the copy was replaced meanwhile. */
async function fetchOnce(
  remote: Stream,
  local: Stream,
  count: number,
  signal: AbortSignal,
): Promise<EarlierRecords | undefined> {
  const identity = await local.identity()
  const lowest = (await earlierSegments(local, identity)).at(-1)
  const end = lowest?.start ?? (await firstSeqNum(local))
  const segment = segmentStream(local, identity, end)
  const stored = await tailOf(segment)
  let next = stored
  // An interrupted fetch is continued, from its last record on, which is compared.
  const from = Math.max(0, stored === undefined ? end - count : stored - 1)
  if (from === end) return { count: 0, start: end }
  const follower = await recordAt(lowest?.stream ?? local, end)
  const known = [follower, stored === undefined ? undefined : await recordAt(segment, from)]
  const query = { seqNum: from, count: end - from + (follower === undefined ? 0 : 1) }
  for await (const { records } of remote.read(query, { as: 'bytes', signal }).batches()) {
    for (const record of records) {
      const same = known.find((one) => one?.seqNum === record.seqNum)
      if (same === undefined || equalRecords(record, same)) continue
      await deleteIfPresent(segment)
      throw new HeadwaterError('stream_deleted', 'the remote stream is not the one that was copied')
    }
    const earlier = records.filter(({ seqNum }) => seqNum >= (next ?? 0) && seqNum < end)
    if (earlier.length === 0) continue
    const { seqNum } = earlier[0]!
    if (seqNum !== next) {
      // The remote stream was trimmed: what was stored does not lead to the copy any more.
      if (next !== undefined) await deleteIfPresent(segment)
      await segment.restore({ config: COPY_CONFIG, start: { seqNum, timestamp: 0 } }, { signal })
      next = seqNum
    }
    if (earlier.at(-1)!.seqNum !== next + earlier.length - 1) break
    const inputs = earlier.map(({ timestamp, headers, body }) => ({ timestamp, headers, body }))
    try {
      await segment.append(inputs, { matchSeqNum: next, signal })
    } catch (error) {
      if (!isStreamMissing(error) && codeOf(error) !== 'stream_deletion_pending') throw error
      // A trim or a restart has deleted it.
      if (await isCurrent(local, identity)) throw trimmedError()
      return undefined
    }
    next += inputs.length
  }
  if (next === undefined) return { count: 0, start: end }
  if (next !== end) {
    await deleteIfPresent(segment)
    throw trimmedError()
  }
  const isSame = await isCurrent(local, identity)
  const segments = isSame ? await earlierSegments(local, identity) : []
  const found = segments.find(({ stream }) => stream.equals(segment))
  if (found !== undefined) return { count: end - found.start, start: found.start }
  // The copy does not lead to the segment any more.
  await deleteIfPresent(segment)
  if (isSame) throw trimmedError()
  return undefined
}

function trimmedError(): HeadwaterError {
  return new HeadwaterError('range_not_satisfiable', 'the records were trimmed while they were fetched')
}

/** Resolves to whether a copy is still the one with this identity. */
async function isCurrent(local: Stream, identity: string | undefined): Promise<boolean> {
  try {
    return (await local.identity()) === identity
  } catch (error) {
    if (isStreamMissing(error)) return false
    throw error
  }
}

/** Does work until a signal aborts it. `underWay` has the work until that ends, which may be later. */
export async function untilAborted<Result>(
  signals: readonly (AbortSignal | undefined)[],
  underWay: Set<Promise<unknown>>,
  work: (ending: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController()
  const ignore = onAnyAbort(signals, (reason) => ending.abort(reason))
  const running = work(ending.signal).finally(() => {
    ignore()
    underWay.delete(running)
  })
  underWay.add(running)
  return unlessAborted(ending.signal, running)
}

/**
 * Deletes a copy with its earlier history, and begins another one, unless the signal aborts before that.
 * Calls `replaced` afterwards, even if that failed: the copy may be another one by then, or missing.
 */
export async function restartCopy(
  remote: Stream,
  from: MirrorStart,
  copy: LocalCopy,
  signal: AbortSignal,
  outboxLog: OutboxLog | undefined,
  replaced: () => void,
): Promise<void> {
  const start = await copyStart(remote, from, signal)
  signal.throwIfAborted()
  const identity = await copy.ensure()
  if (outboxLog !== undefined && !(await isContinued(copy.existing, identity, remote, signal))) {
    await (await SENDER.load()).parkInDoubt(outboxLog, signal)
  }
  await dropEarlier(copy.existing, identity, Number.POSITIVE_INFINITY)
  await replaceCopy(copy, start).finally(replaced)
}

/** Resolves to the tail of a stream; to undefined if there is no such stream. */
async function tailOf(stream: Stream): Promise<number | undefined> {
  try {
    return (await stream.checkTail()).seqNum
  } catch (error) {
    if (isStreamMissing(error)) return undefined
    throw error
  }
}

/** Opens a read across the earlier records and the copy. */
export async function openAcross(
  local: Stream,
  query: ReadQuery,
  heartbeats: boolean,
): Promise<RecordCursor | undefined> {
  const checked = historyQuery(query)
  const { seqNum, timestamp, tailOffset, ...bounds } = checked
  const identity = await local.identity()
  const segments = (await earlierSegments(local, identity)).reverse()
  const first = segments.at(-1)?.end
  const time = timestamp === undefined ? undefined : millisecondsOf(timestamp)
  const from = tailOffset === undefined ? seqNum : (await local.checkTail()).seqNum - tailOffset
  const isBefore = ({ end, timestamp: last }: { readonly end: number; readonly timestamp: number }) =>
    time === undefined ? from! < end : time <= last
  const parts: ChainPart[] = segments.filter(isBefore)
  const options = { heartbeats, allowsEmpty: 'always' } as const
  if (parts.length === 0) return local.openCursor(checked, options)
  const start = time === undefined ? { seqNum: Math.max(from!, 0) } : { timestamp: time }
  parts.push({ stream: local, start: first!, end: undefined })
  return new ChainCursor(parts, () => isCurrent(local, identity), start, bounds, options)
}
