import {
  type Basin,
  HeadwaterError,
  type Metric,
  type RetentionPolicy,
  type Stream,
} from '../../src/index.ts'
import { endOfUsage } from '../../src/model/metrics.ts'

/** The known facts about a stream or a basin. A member that is not known is undefined. */
export interface Details {
  readonly firstSeqNum?: number | undefined
  readonly nextSeqNum?: number | undefined
  /** Records between both, commands included. */
  readonly records?: number | undefined
  /** Metered bytes. */
  readonly bytes?: number | undefined
  /** The timestamp of the last record, in milliseconds since the Unix epoch. */
  readonly lastWrite?: number | undefined
  readonly retention?: RetentionPolicy | undefined
}

/** Codes of errors that say that the caller cannot know something, and not that a request failed. */
const UNKNOWN: ReadonlySet<string> = new Set([
  'permission_denied',
  'unsupported',
  'invalid',
  // Other servers have no usage of basins whose names are short.
  'bad_path',
  'not_found',
  'encryption_key_invalid',
  'decryption_failed',
  'basin_not_found',
  'basin_deletion_pending',
  'stream_not_found',
  'stream_deletion_pending',
  'stream_deleted',
])

/** Resolves to undefined if the caller cannot know the value. */
export async function ifKnown<Value>(value: Promise<Value>): Promise<Value | undefined> {
  try {
    return await value
  } catch (error) {
    if (HeadwaterError.is(error) && UNKNOWN.has(error.code)) return undefined
    throw error
  }
}

/** Resolves to what a request for the first record tells: it has the tail, too. */
export async function streamDetails(stream: Stream): Promise<Details> {
  const first = await ifKnown(stream.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes' }))
  const tail = first?.tail ?? (await ifKnown(stream.checkTail()))
  const nextSeqNum = tail?.seqNum
  const firstSeqNum = first === undefined ? undefined : (first.records[0]?.seqNum ?? nextSeqNum)
  const isKnown = firstSeqNum !== undefined && nextSeqNum !== undefined
  return {
    firstSeqNum,
    nextSeqNum,
    records: isKnown ? nextSeqNum - firstSeqNum : undefined,
    lastWrite: tail === undefined || tail.seqNum === 0 ? undefined : tail.timestamp,
  }
}

/**
 * Resolves to everything that is known about a stream.
 *
 * @param now In milliseconds since the Unix epoch.
 */
export async function allStreamDetails(stream: Stream, now: number): Promise<Details> {
  const [details, config, bytes] = await Promise.all([
    streamDetails(stream),
    ifKnown(stream.config()),
    ifKnown(stream.metrics(storageNow(now))),
  ])
  return { ...details, bytes: lastValue(bytes), retention: config?.retentionPolicy }
}

const RATE_SECONDS = 60

/**
 * Resolves to the records per second in the minute before `now`, by their timestamps; undefined if the caller
 * cannot know it. Reads one record.
 */
export async function appendRate(stream: Stream, now: number): Promise<number | undefined> {
  const query = { timestamp: Math.max(0, now - RATE_SECONDS * 1000), count: 1, clamp: true }
  const [tail, recent] = await Promise.all([
    ifKnown(stream.checkTail()),
    ifKnown(stream.readBatch(query, { as: 'bytes' })),
  ])
  if (tail === undefined || recent === undefined) return undefined
  // A record may have been appended between both requests.
  return Math.max(0, tail.seqNum - (recent.records[0]?.seqNum ?? tail.seqNum)) / RATE_SECONDS
}

/** @param now In milliseconds since the Unix epoch. */
export async function basinDetails(basin: Basin, now: number): Promise<Details> {
  const [config, bytes] = await Promise.all([
    ifKnown(basin.config()),
    ifKnown(basin.metrics(storageNow(now))),
  ])
  return { bytes: lastValue(bytes), retention: config?.defaultStreamConfig.retentionPolicy }
}

function storageNow(now: number) {
  const end = endOfUsage(now) * 1000
  return { set: 'storage', start: end - 60_000, end } as const
}

function lastValue(metrics: readonly Metric[] | undefined): number | undefined {
  const gauge = metrics?.find(({ kind }) => kind === 'gauge')
  return gauge?.kind === 'gauge' ? gauge.values.at(-1)?.[1] : undefined
}
