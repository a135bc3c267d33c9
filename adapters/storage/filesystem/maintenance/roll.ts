import type { FileCache } from '../files/file-cache.ts'
import { parseFileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { EndedJournal } from '../journal/journals.ts'
import { type Snapshot, writeCheckpoint } from '../state/checkpoint.ts'
import { type OpenCheckpoint, openCheckpoint } from '../state/checkpoint-file.ts'
import { Run, Segment } from '../state/segment.ts'
import type { State } from '../state/state.ts'
import type { LogFacts } from '../state/stored-logs.ts'
import type { UnresolvedRolls } from './failed-rolls.ts'
import { type RolledBlocks, type RollOptions, rollBlocks } from './roll-blocks.ts'

/** The state when the journals were ended. */
interface RollPlan {
  readonly snapshot: Omit<Snapshot, 'logs'>
  /** The journals to roll. */
  readonly journals: readonly EndedJournal[]
}

/** The durable result of a roll. */
interface RollResult extends RolledBlocks {
  /** The new segments with their use. */
  readonly used: readonly Segment[]
  readonly checkpoint: OpenCheckpoint
}

/** Captures the state. Must be called between two groups. Takes the same time however much has changed. */
export function planRoll(state: State, journal: number, journals: readonly EndedJournal[]): RollPlan {
  state.freeze()
  const { nextLog, nextVersion } = state
  const segments = [...state.segments.values()].filter(({ runs }) => runs > 0).map(copyOf)
  return {
    snapshot: { journal, nextLog, nextVersion, segments, collections: state.catalog.snapshot() },
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
  { logs: stored }: State,
  plan: RollPlan,
  unresolvedRolls: UnresolvedRolls,
  options: RollOptions,
): Promise<RollResult> {
  const frozen = stored.frozen()
  const { segments, logs: rolled } = await rollBlocks(files, handles, plan.journals, frozen, options)
  const used = usedSegments({ segments, logs: rolled })
  const logs = frozen.map((log): LogFacts => {
    const runs = rolled.get(log.number)?.runs
    const { number, id, head, reclaimedPoint } = log
    return runs === undefined ? log : { number, id, head, reclaimedPoint, runs: [...log.runs, ...runs] }
  })
  const snapshot = {
    ...plan.snapshot,
    segments: [...plan.snapshot.segments, ...used],
    logs: stored.snapshot(logs),
  }
  try {
    if (segments.length > 0) await files.syncDirectory()
    await writeCheckpoint(files, snapshot, options.isAborted)
    await files.syncDirectory()
    return { segments, used, logs: rolled, checkpoint: await openCheckpoint(files, snapshot.journal) }
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

/**
 * Continues with the checkpoint, and makes the logs that were changed meanwhile use the new segments. Must be
 * called between two groups.
 */
export function applyRoll(state: State, { used, logs, checkpoint }: RollResult): void {
  state.rebase(checkpoint.state)
  const homes = new Map(used.map((facts) => [facts.number, state.addSegment(facts)]))
  for (const facts of used) homes.get(facts.number)!.restore(facts)
  for (const [number, log] of state.logs.changedEntries()) {
    const rolled = logs.get(number)
    if (rolled === undefined) continue
    const runs = rolled.runs.map((run) => new Run(homes.get(run.segment)!, run))
    if (log === null) for (const run of runs) state.dropRun(run)
    else state.replaceRolledBlocks(log, runs, rolled.blocks)
  }
}

/**
 * Removes the journals that a checkpoint covers, and the checkpoints before it, also those that earlier calls
 * could not remove. Rejects with the first failure once it has tried all of them.
 */
export async function removeCovered(files: Files, handles: FileCache, checkpoint: number): Promise<void> {
  const failures: unknown[] = []
  for (const name of await files.list()) {
    const file = parseFileName(name)
    if (file === undefined || file.kind === 'segment' || file.number >= checkpoint) continue
    await handles.remove(name).catch((error) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

/** The new segments as they will be used. */
function usedSegments({ segments, logs }: RolledBlocks): readonly Segment[] {
  const homes = new Map(segments.map((facts) => [facts.number, new Segment(facts)]))
  for (const { runs } of logs.values()) {
    for (const run of runs) {
      const home = homes.get(run.segment)!
      home.add(new Run(home, run))
    }
  }
  return [...homes.values()]
}

function copyOf(segment: Segment): Segment {
  const copy = new Segment(segment)
  copy.restore(segment)
  return copy
}

/** The least gain for which to roll, as a share of the size at which journals are rolled. */
const GAIN_SHARE_MIN = 1 / 256

/**
 * The space that a roll would free. Only a full disk makes it worth counting: journals are small, and freed
 * blocks in them stay until they are rolled.
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
    for (const { blocks } of state.logs.changed()) {
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
