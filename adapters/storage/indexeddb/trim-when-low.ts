import type { Stream } from '../../../src/engine/stream.ts'
import { systemClock } from '../../../src/engine/system-clock.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { Clock } from '../../../src/storage/clock.ts'
import type { LowSpace } from './space.ts'
import type { IndexedDbStorage } from './storage.ts'

/** How long trimmed records may take to be freed, in milliseconds: the engine's grace, and its next run of background work. */
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
 * For one page or worker of an origin. Returns how to stop. Errors: `RangeError` for a share that makes no sense.
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
  let trims: readonly PastTrim[] = []

  async function trim(usage: LowSpace): Promise<void> {
    const at = clock.now()
    trims = trims.filter((past) => past.at > at - FREEING_MS)
    const bytes = excessBytes(usage, freeShare) - unfreedBytes(trims, usage)
    if (bytes <= 0) return
    const { points, foundBytes } = await oldest(await streams(), bytes)
    for (const [stream, point] of points) {
      await stream.trim(point)
      onTrim?.(stream, point)
    }
    trims = [...trims, { at, bytes: foundBytes, usage }]
  }

  let isTrimming = false
  const subscription = storage.lowSpace$.subscribe(async (usage) => {
    if (isTrimming) return
    isTrimming = true
    await trim(usage).catch((error) => onError?.(error))
    isTrimming = false
  })
  return () => subscription.unsubscribe()
}

interface PastTrim {
  readonly at: number
  readonly bytes: number
  /** What there was then. */
  readonly usage: LowSpace
}

/** What was trimmed lately and is still counted as used: it must not be trimmed for a second time. */
function unfreedBytes(trims: readonly PastTrim[], { usedBytes = 0, writtenBytes }: LowSpace): number {
  const [first] = trims
  if (first === undefined) return 0
  const { usage } = first
  const freed = (usage.usedBytes ?? 0) + (writtenBytes - usage.writtenBytes) - usedBytes
  return trims.reduce((sum, { bytes }) => sum + bytes, 0) - Math.max(freed, 0)
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

/** Where to trim the streams so that the oldest `bytes` of them go, or all that there is. */
async function oldest(streams: Iterable<Stream>, bytes: number) {
  const points = new Map<Stream, number>()
  let foundBytes = 0
  let candidates = await Promise.all([...streams].map((stream) => candidateOf(stream, 0)))
  while (foundBytes < bytes) {
    candidates = candidates.filter((candidate) => candidate !== undefined)
    const first = candidates.reduce((a, b) => (a && b && b.timestamp < a.timestamp ? b : a), candidates[0])
    if (first === undefined) break
    const { stream, endSeqNum, meteredBytes } = first
    points.set(stream, endSeqNum)
    foundBytes += meteredBytes
    candidates[candidates.indexOf(first)] = await candidateOf(stream, endSeqNum)
  }
  return { points, foundBytes }
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
