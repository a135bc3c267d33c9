import { BY_MINUTE } from '../core/usage/resolutions.ts'
import type { UsageContext } from '../engine/service/usage.ts'
import { macrotask } from '../runtime/macrotask.ts'
import type { StorageSession } from '../storage/contract.ts'
import { listDocuments, streamKey } from '../storage/documents.ts'
import { logScope, readMeasurements } from './documents.ts'

/** The result of {@link measureEach}. */
interface Measured {
  /** Metered bytes by log id. */
  readonly sizes: ReadonlyMap<string, number>
  /** Errors by log id. */
  readonly failures: ReadonlyMap<string, unknown>
}

/** Measures logs. A log that cannot be measured does not affect the others. Never rejects. */
export async function measureEach(session: StorageSession, logIds: readonly string[]): Promise<Measured> {
  try {
    const sizes = await session.measure(logIds)
    return { sizes: new Map(logIds.map((logId, index) => [logId, sizes[index]!])), failures: new Map() }
  } catch {
    const sizes = new Map<string, number>()
    const failures = new Map<string, unknown>()
    const measureOne = async (logId: string) => {
      const [size] = await session.measure([logId])
      sizes.set(logId, size!)
    }
    const all = logIds.map((logId) => measureOne(logId).catch((error) => failures.set(logId, error)))
    await Promise.all(all)
    return { sizes, failures }
  }
}

interface BasinSize {
  readonly bytes: number
  readonly hasStreams: boolean
}

const STREAMS_PER_PAGE = 256

/**
 * Adds up the stored bytes of a basin's streams. A stream that cannot be measured counts with its last stored
 * measurement, and the first such failure is reported. Yields between pages, so that the caller can pause.
 */
export async function* measureBasin(
  { session, clock, onBackgroundError }: UsageContext,
  basin: string,
): AsyncGenerator<void, BasinSize> {
  const prefix = streamKey(basin, '')
  let bytes = 0
  let after = ''
  let hasReported = false
  for (;;) {
    const streams = await listDocuments(session, 'streams', { prefix, after, limit: STREAMS_PER_PAGE })
    const { sizes, failures } = await measureEach(
      session,
      streams.map(({ value }) => value.logId),
    )
    for (const size of sizes.values()) bytes += size
    for (const [logId, failure] of failures) {
      bytes += (await lastMeasurement(session, logId, Math.floor(clock.now() / 1000))) ?? 0
      if (!hasReported) onBackgroundError(failure)
      hasReported = true
    }
    if (streams.length < STREAMS_PER_PAGE) return { bytes, hasStreams: after !== '' || streams.length > 0 }
    after = streams.at(-1)!.key
    yield
  }
}

/** Reads the latest measurement of a log; undefined if there is none. */
export async function lastMeasurement(
  session: StorageSession,
  logId: string,
  now: number,
): Promise<number | undefined> {
  const all = { finest: BY_MINUTE, since: 0, to: Infinity, stopBefore: Infinity }
  const points = await readMeasurements(session, logScope(logId), all, now)
  return points.sort(([a], [b]) => b - a)[0]?.[1]
}

/** Performs work that yields now and then, and lets other work run in between. */
export async function runToEnd<Result>(work: AsyncGenerator<void, Result>): Promise<Result> {
  for (;;) {
    const step = await work.next()
    if (step.done) return step.value
    await macrotask()
  }
}
