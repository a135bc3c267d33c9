import { ByteReader } from '../files/bytes.ts'
import type { FileCache } from '../files/file-cache.ts'
import type { Files } from '../files/files.ts'
import type { EndedJournal } from '../journal/journals.ts'
import { type Snapshot, writeCheckpoint } from '../state/checkpoint.ts'
import { type JournalBlock, NO_JOURNAL_BLOCKS } from '../state/log.ts'
import { Run, Segment } from '../state/segment.ts'
import type { State } from '../state/state.ts'
import { type LogFacts, readLogKey } from '../state/stored-logs.ts'
import { type RolledBlocks, type RollOptions, rollBlocks } from './roll-blocks.ts'
import type { UnresolvedRolls } from './unresolved-rolls.ts'

type CapturedLog = LogFacts & { readonly blocks: readonly JournalBlock[] }

/** The state when the journals were ended. */
export interface RollPlan {
  readonly snapshot: Omit<Snapshot, 'logs'>
  /** Ascending by number. */
  readonly loadedLogs: readonly CapturedLog[]
  readonly unloadedLogs: Iterable<Buffer>
  /** The journals to roll. */
  readonly journals: readonly EndedJournal[]
}

/** The durable result of a roll. */
export interface RollResult extends RolledBlocks {
  readonly checkpointBytes: number
}

/**
 * Captures the state. Must be called between two groups. Takes a few nanoseconds per document and log that
 * changed since the checkpoint, because it copies references to immutable values.
 */
export function planRoll(state: State, journal: number, journals: readonly EndedJournal[]): RollPlan {
  const loadedLogs = [...state.logs.loaded()]
    .map(({ number, id, head, runs, blocks }) => {
      // Later appends extend the array of a log.
      return { number, id, head, runs, blocks: blocks.length === 0 ? NO_JOURNAL_BLOCKS : blocks.slice() }
    })
    .sort((a, b) => a.number - b.number)
  const { nextLog, nextVersion } = state
  const segments = [...state.segments.values()].filter(({ runs }) => runs > 0).map(copyOf)
  return {
    snapshot: { journal, nextLog, nextVersion, segments, collections: state.catalog.snapshot() },
    loadedLogs,
    unloadedLogs: state.logs.unloaded(),
    journals,
  }
}

/**
 * Moves the blocks in the ended journals to segments, and writes a checkpoint of the captured state that
 * refers to them. No blocks may be freed meanwhile. If it rejects, it has changed nothing, or has added
 * itself to `unresolvedRolls`.
 */
export async function roll(
  files: Files,
  handles: FileCache,
  plan: RollPlan,
  unresolvedRolls: UnresolvedRolls,
  options: RollOptions,
): Promise<RollResult> {
  const { segments, logs: rolled } = await rollBlocks(files, handles, plan.journals, plan.loadedLogs, options)
  const logs = plan.loadedLogs.map((log) => {
    const runs = rolled.get(log.number)?.runs
    return runs === undefined ? log : { ...log, runs: log.runs.concat(runs) }
  })
  const snapshot = {
    ...plan.snapshot,
    segments: [...plan.snapshot.segments, ...usedSegments({ segments, logs: rolled })],
    logs: mergeByNumber(plan.unloadedLogs, logs),
  }
  try {
    if (segments.length > 0) await files.syncDirectory()
    const checkpointBytes = await writeCheckpoint(files, snapshot, options.isAborted)
    await files.syncDirectory()
    return { segments, logs: rolled, checkpointBytes }
  } catch (error) {
    unresolvedRolls.add(
      snapshot.journal,
      segments.map(({ number }) => number),
    )
    // Retried before anything is freed.
    await unresolvedRolls.rollBack().catch(() => {})
    throw error
  }
}

/** Makes the logs use the new segments. Must be called between two groups. */
export function applyRoll(state: State, { segments, logs }: RollResult): void {
  const homes = new Map(segments.map((facts) => [facts.number, state.addSegment(facts)]))
  for (const [number, { runs, blocks }] of logs) {
    const log = state.logs.withNumber(number)
    if (log === undefined) continue
    const placed = runs.map((run) => new Run(homes.get(run.segment)!, run))
    state.replaceRolledBlocks(log, placed, blocks)
  }
}

/** The new segments as they will be used. */
function usedSegments({ segments, logs }: RolledBlocks): Iterable<Segment> {
  const homes = new Map(segments.map((facts) => [facts.number, new Segment(facts)]))
  for (const { runs } of logs.values()) {
    for (const run of runs) {
      const home = homes.get(run.segment)!
      home.add(new Run(home, run))
    }
  }
  return homes.values()
}

function copyOf(segment: Segment): Segment {
  const copy = new Segment(segment)
  copy.restore(segment)
  return copy
}

function* mergeByNumber(
  stored: Iterable<Buffer>,
  loaded: readonly LogFacts[],
): Generator<Buffer | LogFacts, void, undefined> {
  let next = 0
  for (const item of stored) {
    const { number } = readLogKey(new ByteReader(item))
    while (next < loaded.length && loaded[next]!.number < number) yield loaded[next++]!
    yield item
  }
  while (next < loaded.length) yield loaded[next++]!
}

/** The least gain for which to roll, as a share of the size at which journals are rolled. */
const GAIN_SHARE_MIN = 1 / 256

/**
 * What a roll would free. Only a full disk makes it worth counting: journals are small, and freed blocks in
 * them stay until they are rolled.
 */
export class RollGain {
  /** The gain that was last tried for. */
  #triedBytes = 0
  #neededBytes = 0

  /** An estimate of what the roll writes. */
  get neededBytes(): number {
    return this.#neededBytes
  }

  /** Whether a roll would free enough, and more than when it was last tried. */
  isDue(state: State, journalBytes: number, checkpointBytes: number, rollBytes: number): boolean {
    const gainMin = this.#triedBytes + rollBytes * GAIN_SHARE_MIN
    if (journalBytes - checkpointBytes < gainMin) return false
    this.#neededBytes = checkpointBytes
    for (const { blocks } of state.logs.loaded()) {
      for (const { bytes } of blocks) this.#neededBytes += bytes
    }
    const gain = journalBytes - this.#neededBytes
    if (gain < gainMin) return false
    this.#triedBytes = gain
    return true
  }

  /** Notes the end of a roll. */
  rolled(): void {
    this.#triedBytes = 0
  }
}
