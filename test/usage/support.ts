import type { VirtualClock } from '../../adapters/testing/index.ts'
import { acquireSession } from '../../src/engine/context.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricInterval,
  MetricPoint,
} from '../../src/model/metrics.ts'
import type { StreamRef } from '../../src/model/names.ts'
import type { Head, Storage, StorageSession } from '../../src/storage/contract.ts'
import { putDocument, type StreamDocument, streamKey } from '../../src/storage/documents.ts'
import { identityOf } from '../../src/storage/heads.ts'
import { type AppendUsage, type UsageMeter, usageMetrics } from '../../src/usage/index.ts'
import { testClock, testStorage } from '../support/index.ts'

/** 2025-01-01T00:00:00Z, in seconds, the start time of these tests. */
export const START: number = Date.UTC(2025, 0, 1) / 1000
export const MINUTE = 60
export const HOUR = 3_600
export const DAY = 86_400

/** The beginning and the end, in seconds since the start. */
type Range = readonly [from: number, to: number]

/** The usage meter without an engine. */
export interface TestUsage {
  readonly usage: UsageMeter
  readonly clock: VirtualClock
  readonly storage: Storage
  readonly session: StorageSession
  /** The errors passed to `onBackgroundError`. */
  readonly errors: unknown[]
}

/** Without `started` usage is stored by queries and on close only, and weeks pass quickly. */
export async function openUsage(
  options: { storage?: Storage; clock?: VirtualClock; started?: boolean } = {},
): Promise<TestUsage> {
  const { storage = testStorage(), clock = testClock(), started = false } = options
  const errors: unknown[] = []
  const session = await acquireSession(storage, { clock, onLogChanged: () => {} })
  const usage = usageMetrics().open({ session, clock, onBackgroundError: (error) => errors.push(error) })
  if (started) usage.start()
  return { usage, clock, storage, session, errors }
}

export function secondsOf(clock: VirtualClock): number {
  return Math.floor(clock.now() / 1000)
}

/** A query does the hourly work that is due. */
export async function upkeep(test: TestUsage): Promise<void> {
  await activeBasins(test, [0, 0])
}

/** Advances the time to a second since the start. */
export async function advanceTo({ clock }: Pick<TestUsage, 'clock'>, seconds: number): Promise<void> {
  await clock.advance((START + seconds) * 1000 - clock.now())
}

// Operations -------------------------------------------------------------------------------------

export async function createBasin({ session, clock }: TestUsage, name: string): Promise<void> {
  const value = { name, createdAt: clock.now(), deletedAt: null }
  await session.commit([{ kind: 'put', collection: 'basins', key: name, value }])
}

export async function deleteBasin({ session }: TestUsage, name: string): Promise<void> {
  await session.commit([{ kind: 'delete', collection: 'basins', key: name }])
}

/** Creates a stream without notifying the meter. The default id of its log is its name. */
export async function createStream(
  { session, clock }: TestUsage,
  { basin, stream }: StreamRef,
  logId = stream,
): Promise<void> {
  const createdAt = clock.now()
  const document = { basin, name: stream, logId, createdAt } as StreamDocument
  await session.commit([
    putDocument('streams', streamKey(basin, stream), document),
    { kind: 'create-log', logId, epoch: 1, createdAt },
  ])
}

export async function deleteStream(
  { session }: TestUsage,
  ref: StreamRef,
  logId = ref.stream,
): Promise<void> {
  const key = streamKey(ref.basin, ref.stream)
  await session.commit([
    { kind: 'delete', collection: 'streams', key },
    { kind: 'delete-log', logId },
  ])
}

let appends = 0

/** Stores one record of this many metered bytes without notifying the meter. */
export async function store(
  { session }: TestUsage,
  logId: string,
  meteredBytes: number,
  more: Partial<Head> = {},
): Promise<void> {
  const head = (await session.head(logId))!
  const { seqNum } = head.tail
  await session.append({
    logId,
    expected: identityOf(head),
    blocks: [
      {
        firstSeqNum: seqNum,
        endSeqNum: seqNum + 1,
        firstTimestamp: 0,
        lastTimestamp: 0,
        meteredBytes,
        expiresAt: null,
        data: new Uint8Array(1),
      },
    ],
    head: { ...head, tail: { seqNum: seqNum + 1, timestamp: 0 }, appendId: `test:${++appends}`, ...more },
  })
}

/** Trims and frees all records of a log, but for one of 2 bytes, without notifying the meter. */
export async function freeRecords(test: TestUsage, logId: string): Promise<readonly string[]> {
  const { session, clock } = test
  const head = (await session.head(logId))!
  const point = head.tail.seqNum
  await store(test, logId, 2, { trimPoint: point, trims: [{ point, at: clock.now() }] })
  const { logIds } = await session.reclaim({ now: clock.now(), trimmedBefore: clock.now(), blocksMax: 100 })
  return logIds
}

/** Stores one record and records the append. */
export async function append(
  test: TestUsage,
  { basin, stream }: StreamRef,
  meteredBytes: number,
  connection: object = test,
): Promise<void> {
  await store(test, stream, meteredBytes)
  recordAppend(test, { basin, stream }, meteredBytes, connection)
}

/** Records an append of one record without storing it. */
export function recordAppend(
  { usage, clock }: TestUsage,
  { basin, stream }: StreamRef,
  meteredBytes: number,
  connection: object,
  more: Partial<AppendUsage> = {},
): void {
  usage.appended({
    basin,
    logId: stream,
    storageClass: 'standard',
    records: 1,
    meteredBytes,
    connection,
    at: clock.now(),
    queueMs: 3,
    ackMs: 20,
    ...more,
  })
}

// Results ----------------------------------------------------------------------------------------

/** Values with their times since the start: `0:7 90s:1 5m:2 3h:1 4d:9`. */
function shown(values: readonly MetricPoint[]): string {
  return values.map(([time, value]) => `${timeText(time / 1000 - START)}:${value}`).join(' ')
}

function timeText(seconds: number): string {
  if (seconds === 0) return '0'
  if (seconds % DAY === 0) return `${seconds / DAY}d`
  if (seconds % HOUR === 0) return `${seconds / HOUR}h`
  return seconds % MINUTE === 0 ? `${seconds / MINUTE}m` : `${seconds}s`
}

/** The values of each metric by name. */
function valuesOf(metrics: readonly Metric[]): Record<string, string> {
  return Object.fromEntries(
    metrics.map((metric) => [metric.name, shown(metric.kind === 'label' ? [] : metric.values)]),
  )
}

/** The bounds of a query, given in seconds since the start. */
export function rangeOf([from, to]: Range) {
  return { start: (START + from) * 1000, end: (START + to) * 1000 }
}

export async function ofBasin(
  { usage }: TestUsage,
  basin: string,
  set: BasinMetricSet,
  range: Range,
  interval?: MetricInterval,
): Promise<Record<string, string>> {
  return valuesOf(await usage.metrics.basin(basin, { set, ...rangeOf(range), interval }))
}

export async function ofAccount(
  { usage }: TestUsage,
  set: AccountMetricSet,
  range: Range,
  interval?: MetricInterval,
): Promise<Record<string, string>> {
  return valuesOf(await usage.metrics.account({ set, ...rangeOf(range), interval }))
}

export async function ofStream({ usage }: TestUsage, ref: StreamRef, range: Range): Promise<string> {
  const metrics = await usage.metrics.stream(ref, { set: 'storage', ...rangeOf(range) })
  return valuesOf(metrics).metered_size!
}

export async function activeBasins({ usage }: TestUsage, range: Range): Promise<readonly string[]> {
  const query = { set: 'active-basins', ...rangeOf(range) } as const
  const [metric] = await usage.metrics.account(query)
  if (metric?.kind !== 'label' || metric.name !== 'active_basins') throw new Error('not a label')
  return metric.values
}
