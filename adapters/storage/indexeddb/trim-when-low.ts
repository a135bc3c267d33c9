import { invalid } from '../../../src/model/errors.ts'
import { assertOptions, hasMethod, type MembersOf } from '../../../src/model/validation.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import type { LowSpace } from './space.ts'
import type { IndexedDbStorage } from './storage.ts'

/**
 * How long the engine may take to free trimmed records, in milliseconds: its grace period and the interval of
 * its background work. The browser may need longer.
 */
const FREEING_MS = 120_000
/** The metered bytes to trim if the browser reports no quota. */
const DEFAULT_TRIM_BYTES = 1024 * 1024
/** The number of records per step. */
const STEP_RECORDS = 100

/** The members of a `Stream` that `trimWhenLow` needs. */
export interface TrimmableStream {
  /** Returns records from a sequence number on; none at the tail. */
  readBatch(query: { readonly seqNum: number; readonly count: number }): Promise<{
    readonly records: readonly { readonly timestamp: number }[]
    readonly lastSeqNum: number
    readonly meteredBytes: number
  }>
  /** Trims the records below a sequence number. */
  trim(trimPoint: number): Promise<unknown>
}

/** Options of `trimWhenLow`. */
export interface TrimWhenLowOptions<Stream extends TrimmableStream = TrimmableStream> {
  /** Returns the streams whose oldest records may be trimmed. Called each time that space is low. */
  readonly streams: () => Iterable<Stream> | Promise<Iterable<Stream>>
  /** The share of the quota, in (0, 1), to free up to. 0.3 by default. */
  readonly freeShare?: number | undefined
  /** Called after each trim. */
  readonly onTrim?: ((stream: Stream, trimPoint: number) => void) | undefined
  /**
   * Called when trimming failed. It is retried the next time that space is low. By default errors are
   * ignored.
   */
  readonly onError?: ((error: unknown) => void) | undefined
  /** The source of time. The system clock by default. */
  readonly clock?: Clock | undefined
}

const TRIM_OPTIONS: MembersOf<TrimWhenLowOptions> = {
  streams: 'function',
  freeShare: 'number',
  onTrim: 'function',
  onError: 'function',
  clock: hasMethod('now', 'a clock'),
}

/**
 * Trims the oldest records of the given streams, by timestamp, whenever space is low, until a share of the
 * quota is free. Browsers count freed space for a long time; until their estimate has fallen, trims only as
 * much as was written meanwhile. Use it in one page or worker of an origin. Returns a function that stops it.
 *
 * Throws `invalid` for invalid options.
 *
 * ```ts
 * const storage = indexedDb('my-app')
 * const hw = await open({ storage })
 * const stop = trimWhenLow(storage, { streams: () => [hw.basin('my-app').stream('log')] })
 * ```
 */
export function trimWhenLow<Stream extends TrimmableStream>(
  storage: IndexedDbStorage,
  options: TrimWhenLowOptions<Stream>,
): () => void {
  assertOptions(options, TRIM_OPTIONS)
  if (options.streams === undefined) throw invalid('`streams` is required', 'streams')
  const { streams, freeShare = 0.3, onTrim, onError, clock = systemClock } = options
  if (!(freeShare > 0 && freeShare < 1)) {
    throw invalid(`freeShare is ${freeShare}; expected a number in (0, 1)`, 'freeShare')
  }
  let trimmed: Trimmed | undefined

  async function trim(usage: LowSpace): Promise<void> {
    const at = clock.now()
    if (trimmed !== undefined && isNoLongerCounted(trimmed, usage, at)) trimmed = undefined
    const bytes = excessBytes(usage, freeShare) - (trimmed === undefined ? 0 : unfreedBytes(trimmed, usage))
    if (bytes <= 0) return
    for (const [stream, { point, meteredBytes }] of await planTrims(await streams(), bytes)) {
      await stream.trim(point)
      const { since = usage, bytes: before = 0 } = trimmed ?? {}
      trimmed = { since, latest: usage, at, bytes: before + meteredBytes }
      onTrim?.(stream, point)
    }
  }

  let isTrimming = false
  const subscription = storage.lowSpace$.subscribe(async (usage) => {
    if (isTrimming) return
    isTrimming = true
    try {
      await trim(usage)
    } catch (error) {
      onError?.(error)
    } finally {
      isTrimming = false
    }
  })
  return () => subscription.unsubscribe()
}

/** Trims whose space the browser may still count as used. */
interface Trimmed {
  /** The size in metered bytes. */
  readonly bytes: number
  /** The usage before the first of these trims. */
  readonly since: LowSpace
  /** The usage before the latest. */
  readonly latest: LowSpace
  /** The time of the latest. */
  readonly at: number
}

/**
 * Whether the browser no longer counts the trimmed records. They may occupy less space than their metered
 * bytes, so after some time a lower estimate is enough; without estimates, time alone decides.
 */
function isNoLongerCounted(trimmed: Trimmed, usage: LowSpace, now: number): boolean {
  if (unfreedBytes(trimmed, usage) === 0) return true
  const { usedBytes } = trimmed.latest
  const hasFallen = usedBytes === undefined || usage.usedBytes === undefined || usage.usedBytes < usedBytes
  return hasFallen && now - trimmed.at >= FREEING_MS
}

function unfreedBytes({ bytes, since }: Trimmed, { usedBytes = 0, writtenBytes }: LowSpace): number {
  const freed = (since.usedBytes ?? 0) + (writtenBytes - since.writtenBytes) - usedBytes
  return Math.max(bytes - Math.max(freed, 0), 0)
}

function excessBytes({ usedBytes, quotaBytes, isFull }: LowSpace, freeShare: number): number {
  if (usedBytes === undefined || quotaBytes === undefined) return DEFAULT_TRIM_BYTES
  const effectiveQuota = isFull ? Math.min(usedBytes, quotaBytes) : quotaBytes
  return usedBytes - effectiveQuota * (1 - freeShare)
}

/** The next records of a stream to trim. */
interface Candidate<Stream> {
  readonly stream: Stream
  readonly timestamp: number
  readonly endSeqNum: number
  readonly meteredBytes: number
}

interface StreamTrim {
  readonly point: number
  readonly meteredBytes: number
}

/** Finds trim points that remove the oldest `bytes` of the streams, or all records if there are fewer. */
async function planTrims<Stream extends TrimmableStream>(
  streams: Iterable<Stream>,
  bytes: number,
): Promise<Map<Stream, StreamTrim>> {
  const trims = new Map<Stream, StreamTrim>()
  let foundBytes = 0
  let candidates = await Promise.all([...streams].map((stream) => candidateOf(stream, 0)))
  while (foundBytes < bytes) {
    candidates = candidates.filter((candidate) => candidate !== undefined)
    const first = candidates.reduce((a, b) => (a && b && b.timestamp < a.timestamp ? b : a), candidates[0])
    if (first === undefined) break
    const { stream, endSeqNum, meteredBytes } = first
    trims.set(stream, {
      point: endSeqNum,
      meteredBytes: meteredBytes + (trims.get(stream)?.meteredBytes ?? 0),
    })
    foundBytes += meteredBytes
    candidates[candidates.indexOf(first)] = await candidateOf(stream, endSeqNum)
  }
  return trims
}

async function candidateOf<Stream extends TrimmableStream>(
  stream: Stream,
  seqNum: number,
): Promise<Candidate<Stream> | undefined> {
  try {
    const { records, lastSeqNum, meteredBytes } = await stream.readBatch({ seqNum, count: STEP_RECORDS })
    const [first] = records
    return first && { stream, timestamp: first.timestamp, endSeqNum: lastSeqNum + 1, meteredBytes }
  } catch (error) {
    if (Object(error).code === 'range_not_satisfiable') return undefined
    throw error
  }
}
