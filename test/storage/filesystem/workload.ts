import { NOW } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import type { Files } from '../../../adapters/storage/media/files.ts'
import type { Prng } from '../../../src/runtime/random.ts'
import type { CatalogChange, Head, StorageSession, StoredBlock } from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { openFiles } from './open-files.ts'
import type { SimulatedDisk } from './simulated-disk.ts'

/** A call that began after `calledAt` operations of the disk and settled after `settledAt`. */
export interface Attempt {
  readonly calledAt: number
  settledAt: number
  /** Unknown: it failed, and may take effect later. */
  outcome: 'open' | 'done' | 'not done' | 'unknown'
}

export interface AppendAttempt extends Attempt {
  readonly head: Head
  /** The attempt that it was sequenced after; undefined: the creation. */
  readonly parent: AppendAttempt | undefined
  readonly blocks: readonly StoredBlock[]
}

export interface LogHistory {
  readonly logId: string
  /** Its creation, its appends and changes of its epoch: everything that changes its head. */
  readonly appends: AppendAttempt[]
  deletion: Attempt | undefined
}

interface PutAttempt extends Attempt {
  /** Ascending from 0. */
  readonly value: number
  /** Deletes the documents instead. */
  readonly deletes: boolean
}

interface ReclaimAttempt {
  readonly calledAt: number
  readonly now: number
  readonly trimmedBefore: number
}

/** All calls of an engine, with their outcomes. */
export interface History {
  readonly logs: LogHistory[]
  /** Writes of two documents that are always written and deleted together. */
  readonly puts: PutAttempt[]
  readonly reclaims: ReclaimAttempt[]
}

const BURSTS = 30

/**
 * Random appends, fences, trims, expiries, epochs, reclaims, creations, deletions and documents on a disk
 * whose journals are rolled all the time. A log has a document of its name, created and deleted with it.
 */
export async function runWorkload(
  disk: SimulatedDisk,
  prng: Prng,
  rollBytes: number,
  history: History = { logs: [], puts: [], reclaims: [] },
  files: Files = disk,
  durability: 'power-loss' | 'process-crash' = 'power-loss',
): Promise<History> {
  const session = await openSimulated(files, rollBytes, durability)
  await observe(disk, session, history)
  for (let burst = 0; burst < BURSTS; burst++) {
    const tasks: Promise<unknown>[] = []
    if (history.logs.filter(({ deletion }) => deletion === undefined).length < 3) {
      tasks.push(createLog(disk, session, history, `log-${history.logs.length}`))
    }
    for (const log of history.logs) tasks.push(useLog(disk, session, log, prng))
    tasks.push(put(disk, session, history, prng))
    if (prng.chance(0.5)) tasks.push(reclaim(disk, session, history, prng))
    await Promise.all(tasks)
  }
  await session.close()
  return history
}

export function openSimulated(
  disk: Files,
  rollBytes: number,
  durability: 'power-loss' | 'process-crash' = 'power-loss',
): Promise<StorageSession> {
  return openFiles(disk, { durability, rollBytes })
}

/** Sets the outcomes of the calls that a killed process left open: the next opening determines them. */
async function observe(disk: SimulatedDisk, session: StorageSession, history: History): Promise<void> {
  const settle = (attempt: Attempt, isApplied: boolean): void => {
    if (attempt.outcome === 'done' || attempt.outcome === 'not done') return
    attempt.outcome = isApplied ? 'done' : 'not done'
    attempt.settledAt = disk.length
  }
  const value = (await session.get('streams', 'one'))?.value
  for (const put of history.puts) settle(put, (put.deletes ? undefined : put.value) === value)
  for (const { logId, appends, deletion } of history.logs) {
    const head = await session.head(logId)
    if (deletion !== undefined) settle(deletion, head === undefined)
    const applied = new Set<AppendAttempt>()
    const found = head && attemptOfHead(appends, head)
    for (let attempt = found; attempt !== undefined; attempt = attempt.parent) applied.add(attempt)
    for (const attempt of appends) settle(attempt, applied.has(attempt))
  }
}

async function createLog(
  disk: SimulatedDisk,
  session: StorageSession,
  history: History,
  logId: string,
): Promise<void> {
  const creation = begin(disk, { head: emptyHead(1, NOW), parent: undefined, blocks: [] })
  const call = session.commit([
    { kind: 'create-log', logId, epoch: 1, createdAt: NOW },
    { kind: 'put', collection: 'settings', key: logId, value: 'its log exists', expect: null },
  ])
  history.logs.push({ logId, appends: [creation], deletion: undefined })
  await recordOutcome(disk, creation, call)
}

async function useLog(
  disk: SimulatedDisk,
  session: StorageSession,
  log: LogHistory,
  prng: Prng,
): Promise<void> {
  if (log.deletion !== undefined) return
  const stored = await session.head(log.logId)
  if (stored === undefined) return
  const current = attemptOfHead(log.appends, stored)!
  if (prng.chance(0.06)) {
    log.deletion = begin(disk, {})
    const call = session.commit([
      { kind: 'delete-log', logId: log.logId },
      { kind: 'delete', collection: 'settings', key: log.logId },
    ])
    await recordOutcome(disk, log.deletion, call)
    return
  }
  if (prng.chance(0.06)) {
    // Unique, so that the head identifies which of several attempts succeeded.
    const epoch = stored.epoch + 1 + prng.below(1_000_000)
    const attempt = begin(disk, { head: { ...stored, epoch }, parent: current, blocks: [] })
    log.appends.push(attempt)
    await recordOutcome(disk, attempt, session.commit([{ kind: 'set-epoch', logId: log.logId, epoch }]))
    return
  }
  const writer = new LogWriter(session, log.logId, stored)
  const calls: Promise<unknown>[] = []
  let parent = current
  for (let i = prng.below(6); i >= 0; i--) {
    const { tail, trimPoint } = writer.head
    const request = writer.request({
      count: 1 + prng.below(3),
      blocks: prng.chance(0.2) ? 2 + prng.below(3) : 1,
      tag: String(prng.below(1_000_000)),
      bodyBytes: prng.chance(0.1) ? prng.below(2000) : undefined,
      expiresAt: prng.pick([null, null, NOW + prng.below(100)]),
      ...(prng.chance(0.15)
        ? { trimPoint: trimPoint + prng.below(tail.seqNum + 1 - trimPoint), trimmedAt: NOW }
        : {}),
      ...(prng.chance(0.1) ? { fencingToken: `token-${prng.below(1_000_000)}` } : {}),
    })
    parent = begin(disk, { head: request.head, parent, blocks: request.blocks })
    log.appends.push(parent)
    calls.push(recordOutcome(disk, parent, session.append(request)))
  }
  await Promise.all(calls)
}

async function put(
  disk: SimulatedDisk,
  session: StorageSession,
  history: History,
  prng: Prng,
): Promise<void> {
  const attempt = begin(disk, { value: history.puts.length, deletes: prng.chance(0.15) })
  history.puts.push(attempt)
  const { value, deletes } = attempt
  const changes = ['one', 'other'].map((key): CatalogChange => {
    const document = { collection: 'streams', key } as const
    return deletes ? { kind: 'delete', ...document } : { kind: 'put', ...document, value }
  })
  await recordOutcome(disk, attempt, session.commit(changes))
}

async function reclaim(
  disk: SimulatedDisk,
  session: StorageSession,
  history: History,
  prng: Prng,
): Promise<void> {
  const limits = { now: NOW + prng.below(100), trimmedBefore: NOW, blocksMax: 1 + prng.below(20) }
  history.reclaims.push({ ...limits, calledAt: disk.length })
  await session.reclaim(limits).catch(() => {})
}

export function attemptOfHead(
  attempts: readonly AppendAttempt[],
  { appendId, epoch }: Head,
): AppendAttempt | undefined {
  return attempts.find(({ head }) => head.appendId === appendId && head.epoch === epoch)
}

export function begin<Facts extends object>(disk: SimulatedDisk, facts: Facts): Facts & Attempt {
  return { ...facts, calledAt: disk.length, settledAt: Number.POSITIVE_INFINITY, outcome: 'open' }
}

export async function recordOutcome(
  disk: SimulatedDisk,
  attempt: Attempt,
  call: Promise<unknown>,
): Promise<void> {
  try {
    await call
    attempt.outcome = 'done'
  } catch (error) {
    const isFailure = StorageFailure.is(error)
    if (!StorageConflict.is(error) && !isFailure) throw error
    const isCertain = isFailure ? error.nothingWritten : true
    attempt.outcome = isCertain ? 'not done' : 'unknown'
  }
  attempt.settledAt = disk.length
}
