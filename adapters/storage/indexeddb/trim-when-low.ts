import type { Stream } from '../../../src/engine/stream.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { Clock } from '../../../src/storage/clock.ts'
import type { LowSpace } from './space.ts'
import type { IndexedDbStorage } from './storage.ts'

/** How long trimmed records may take to be freed, in milliseconds: the engine's grace, and its next run of background work. The browser may need longer. */
const FREEING_MS = 120_000
/** What goes when the browser does not tell how much there is, in metered bytes. */
const BLIND_BYTES = 1024 * 1024
/** How many records are looked at in one go. */
const STEP_RECORDS = 100

export interface TrimWhenLowOptions {
  /** The streams whose oldest records may go; asked for each time. */
  readonly streams: () => Iterable<Stream> | Promise<Iterable<Stream>>
  /** The share of the quota, in (0, 1), that is to be free then; 0.3 by default. */
  readonly freeShare?: number
  /** Told of each trim. */
  readonly onTrim?: (stream: Stream, trimPoint: number) => void
  /** Told when trimming failed; it is tried again when space is low the next time. By default it is ignored. */
  readonly onError?: (error: unknown) => void
  readonly clock?: Clock
}

/**
 * Trims the oldest records of some streams, by their timestamps, whenever space is low, as many as it takes until a share of the quota is free.
 * Browsers count what was freed long after: until the estimate has fallen, no more is trimmed than was written meanwhile. For one page or worker of an origin. Returns how to stop. Errors: `RangeError` for a share that makes no sense.
 *
 * ```ts
 * const storage = indexedDb('my-app')
 * const hw = await open({ storage })
 * const stop = trimWhenLow(storage, { streams: () => [hw.basin('my-app').stream('log')] })
 * ```
 */
export function trimWhenLow(storage: IndexedDbStorage, options: TrimWhenLowOptions): () => void {
  const { streams, freeShare = 0.3, onTrim, onError, clock = systemClock } = options
  if (!(freeShare > 0 && freeShare < 1)) throw new RangeError(`freeShare must be in (0, 1), not ${freeShare}`)
  let trimmed: Trimmed | undefined

  async function trim(usage: LowSpace): Promise<void> {
    const at = clock.now()
    if (trimmed !== undefined && isOver(trimmed, usage, at)) trimmed = undefined
    const bytes = excessBytes(usage, freeShare) - (trimmed === undefined ? 0 : unfreedBytes(trimmed, usage))
    if (bytes <= 0) return
    for (const [stream, { point, meteredBytes }] of await oldest(await streams(), bytes)) {
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

/** What was trimmed and may still be counted as used: it must not be trimmed for a second time. */
interface Trimmed {
  /** In metered bytes. */
  readonly bytes: number
  /** What there was before the first of these trims, and before the last. */
  readonly since: LowSpace
  readonly latest: LowSpace
  /** The time of the last. */
  readonly at: number
}

/**
 * Whether what was trimmed is counted no more, as far as it ever will be: all of it, or what it takes of the space. Browsers tidy up when they like, so the time
 * tells that only once their estimate has fallen; where there is none, it has to do.
 */
function isOver(trimmed: Trimmed, usage: LowSpace, now: number): boolean {
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
  if (usedBytes === undefined || quotaBytes === undefined) return BLIND_BYTES
  const truly = isFull ? Math.min(usedBytes, quotaBytes) : quotaBytes
  return usedBytes - truly * (1 - freeShare)
}

/** The first records of a stream from somewhere on. */
interface Candidate {
  readonly stream: Stream
  readonly timestamp: number
  readonly endSeqNum: number
  readonly meteredBytes: number
}

interface TrimOfStream {
  readonly point: number
  readonly meteredBytes: number
}

/** How to trim the streams so that the oldest `bytes` of them go, or all that there is. */
async function oldest(streams: Iterable<Stream>, bytes: number): Promise<Map<Stream, TrimOfStream>> {
  const trims = new Map<Stream, TrimOfStream>()
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

async function candidateOf(stream: Stream, seqNum: number): Promise<Candidate | undefined> {
  try {
    const { records, lastSeqNum, meteredBytes } = await stream.readBatch({ seqNum, count: STEP_RECORDS })
    const [first] = records
    return first && { stream, timestamp: first.timestamp, endSeqNum: lastSeqNum + 1, meteredBytes }
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'range_not_satisfiable') return undefined
    throw error
  }
}
