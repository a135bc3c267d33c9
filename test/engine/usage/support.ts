import type { VirtualClock } from '../../../adapters/testing/index.ts'
import { Catalog } from '../../../src/engine/catalog.ts'
import type { StreamRef } from '../../../src/engine/context.ts'
import { asJson, streamKey } from '../../../src/engine/documents.ts'
import { settingsOf } from '../../../src/engine/options.ts'
import { Usage } from '../../../src/engine/usage/usage.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricInterval,
  MetricPoint,
} from '../../../src/model/metrics.ts'
import { identityOf, type Storage, type StorageSession } from '../../../src/storage/contract.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'

/** 2025-01-01T00:00:00Z, in seconds: where the clock of these tests starts. */
export const START: number = Date.UTC(2025, 0, 1) / 1000
export const MINUTE = 60
export const HOUR = 3_600
export const DAY = 86_400

/** The usage metrics of an engine that does nothing else. */
export interface TestUsage {
  readonly usage: Usage
  readonly clock: VirtualClock
  readonly storage: Storage
  readonly session: StorageSession
  /** What went to `onBackgroundError`. */
  readonly errors: unknown[]
}

export async function openUsage(given: { storage?: Storage; clock?: VirtualClock } = {}): Promise<TestUsage> {
  const { storage = testStorage(), clock = testClock() } = given
  const errors: unknown[] = []
  const settings = settingsOf({ storage, clock, onBackgroundError: (error) => errors.push(error) })
  const session = await storage.open({ clock, onLogChanged: () => {} })
  return {
    usage: new Usage({ settings, session, catalog: new Catalog(session) }),
    clock,
    storage,
    session,
    errors,
  }
}

export function secondsOf(clock: VirtualClock): number {
  return Math.floor(clock.now() / 1000)
}

/** All that is to be done at this time. */
export async function maintain({ usage }: Pick<TestUsage, 'usage'>): Promise<void> {
  while (await usage.maintain());
}

/** Moves the time to a second since the start. */
export async function goTo({ clock }: Pick<TestUsage, 'clock'>, seconds: number): Promise<void> {
  await clock.advance((START + seconds) * 1000 - clock.now())
}

// What others do in an engine -----------------------------------------------------------------------------------------

export async function createBasin({ session, clock }: TestUsage, name: string): Promise<void> {
  const value = { name, createdAt: clock.now(), deletedAt: null }
  await session.commit([{ kind: 'put', collection: 'basins', key: name, value }])
}

/** Creates a stream, whose log is named like it unless said otherwise, without telling. */
export async function createStream(
  { session, clock }: TestUsage,
  { basin, stream }: StreamRef,
  logId = stream,
): Promise<void> {
  const createdAt = clock.now()
  const value = { basin, name: stream, logId, createdAt } as Parameters<typeof asJson>[0]
  await session.commit([
    { kind: 'put', collection: 'streams', key: streamKey(basin, stream), value: asJson(value) },
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

/** Stores one record of so many metered bytes, without telling. */
export async function store({ session }: TestUsage, logId: string, meteredBytes: number): Promise<void> {
  const head = (await session.head(logId))!
  const { seqNum } = head.tail
  await session.append({
    logId,
    expected: identityOf(head),
    block: {
      firstSeqNum: seqNum,
      endSeqNum: seqNum + 1,
      firstTimestamp: 0,
      lastTimestamp: 0,
      meteredBytes,
      expiresAt: null,
      data: new Uint8Array(1),
    },
    head: { ...head, tail: { seqNum: seqNum + 1, timestamp: 0 }, appendId: `test:${++appends}` },
  })
}

/** An append of one record, stored and told. */
export async function append(
  test: TestUsage,
  { basin, stream }: StreamRef,
  meteredBytes: number,
  connection: object = test,
): Promise<void> {
  await store(test, stream, meteredBytes)
  tellAppend(test, { basin, stream }, meteredBytes, connection)
}

/** Tells an append of one record that nobody stored. */
export function tellAppend(
  { usage, clock }: TestUsage,
  { basin, stream }: StreamRef,
  meteredBytes: number,
  connection: object,
): void {
  usage.appended({
    basin,
    logId: stream,
    storageClass: 'standard',
    records: 1,
    meteredBytes,
    connection,
    at: clock.now(),
    permitMs: 0,
    ackMs: 0,
  })
}

// What is told ----------------------------------------------------------------------------------------------------------

type Values = readonly MetricPoint[]

/** The values of each metric by its name, with times in seconds since the start. */
function valuesOf(metrics: readonly Metric[]): Record<string, Values> {
  return Object.fromEntries(
    metrics.map((metric) => [
      metric.name,
      metric.kind === 'accumulation' || metric.kind === 'gauge'
        ? metric.values.map(([time, value]) => [time - START, value] as const)
        : [],
    ]),
  )
}

/** From and to in seconds since the start. */
export async function ofBasin(
  { usage }: TestUsage,
  basin: string,
  set: BasinMetricSet,
  range: readonly [from: number, to: number],
  interval?: MetricInterval,
): Promise<Record<string, Values>> {
  return valuesOf(await usage.basin(basin, { set, start: START + range[0], end: START + range[1], interval }))
}

export async function ofAccount(
  { usage }: TestUsage,
  set: AccountMetricSet,
  range: readonly [from: number, to: number],
  interval?: MetricInterval,
): Promise<Record<string, Values>> {
  return valuesOf(await usage.account({ set, start: START + range[0], end: START + range[1], interval }))
}

export async function ofStream(
  { usage }: TestUsage,
  ref: StreamRef,
  range: readonly [from: number, to: number],
): Promise<Values> {
  const metrics = await usage.stream(ref, { set: 'storage', start: START + range[0], end: START + range[1] })
  return valuesOf(metrics).metered_size!
}

export async function activeBasins(
  { usage }: TestUsage,
  range: readonly [from: number, to: number],
): Promise<readonly string[]> {
  const query = { set: 'active-basins', start: START + range[0], end: START + range[1] } as const
  const [metric] = await usage.account(query)
  if (metric?.kind !== 'label' || metric.name !== 'active_basins') throw new Error('not a label')
  return metric.values
}

/** The keys of all documents of the usage metrics. */
export async function usageKeys({ session }: TestUsage): Promise<string[]> {
  const documents = await session.list('usage', { prefix: '', after: '', limit: 1_000_000 })
  return documents.map(({ key }) => key)
}
