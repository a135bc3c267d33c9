import { type LogFacts, type Snapshot, writeCheckpoint } from './checkpoint-writer.ts'
import type { Files } from './files.ts'
import type { Handles } from './handles.ts'
import type { EndedJournal } from './journals.ts'
import { type JournalBlock, NO_BLOCKS } from './log.ts'
import { type RolledBlocks, type RollOptions, rollBlocks } from './rolled-blocks.ts'
import { Run } from './run.ts'
import type { SegmentFacts } from './segment.ts'
import type { State } from './state.ts'
import type { UndecidedRolls } from './undecided-rolls.ts'

/** The state at the moment at which the journals were ended. */
export interface RollPlan {
  readonly snapshot: Omit<Snapshot, 'segments' | 'logs'> & { readonly segments: readonly SegmentFacts[] }
  readonly logs: readonly (LogFacts & { readonly blocks: readonly JournalBlock[] })[]
  /** Those that are rolled. */
  readonly journals: readonly EndedJournal[]
}

/** What came of it, durable. */
export interface Rolled extends RolledBlocks {
  readonly checkpointBytes: number
}

/** To be called between two groups. Costs a few nanoseconds for each document and log; what is noted is never changed. */
export function planRoll(state: State, journal: number, journals: readonly EndedJournal[]): RollPlan {
  const logs = [...state.logsByNumber.values()].map(({ number, id, head, runs, blocks }) => {
    // Later appends add to the array of a log.
    return { number, id, head, runs, blocks: blocks.length === 0 ? NO_BLOCKS : blocks.slice() }
  })
  const { nextLog, nextVersion } = state
  const segments = [...state.segments.values()].filter(({ runs }) => runs > 0)
  return {
    snapshot: { journal, nextLog, nextVersion, segments, documents: state.catalog.entries() },
    logs,
    journals,
  }
}

/**
 * Makes segments of the blocks that are in the ended journals, and a checkpoint of the noted state with them. Blocks must not be freed meanwhile. When it
 * rejects, it has changed nothing, unless it is left `undecided`.
 */
export async function roll(
  files: Files,
  handles: Handles,
  plan: RollPlan,
  undecided: UndecidedRolls,
  options: RollOptions,
): Promise<Rolled> {
  const { segments, logs: rolled } = await rollBlocks(files, handles, plan.journals, plan.logs, options)
  const logs = plan.logs.map((log) => {
    const runs = rolled.get(log.number)?.runs
    return runs === undefined ? log : { ...log, runs: log.runs.concat(runs) }
  })
  const snapshot = { ...plan.snapshot, logs, segments: plan.snapshot.segments.concat(segments) }
  try {
    if (segments.length > 0) await files.syncDirectory()
    const checkpointBytes = await writeCheckpoint(files, snapshot, options.isAborted)
    await files.syncDirectory()
    return { segments, logs: rolled, checkpointBytes }
  } catch (error) {
    undecided.add(
      snapshot.journal,
      segments.map(({ number }) => number),
    )
    // It is tried again before something is freed.
    await undecided.takeBack().catch(() => {})
    throw error
  }
}

/** Between two groups: lets the logs find their blocks in the segments. */
export function useRolled(state: State, { segments, logs }: Rolled): void {
  const homes = new Map(segments.map((facts) => [facts.number, state.addSegment(facts)]))
  for (const [number, { runs, blocks }] of logs) {
    const log = state.logsByNumber.get(number)
    if (log === undefined) continue
    const placed = runs.map((run) => new Run(homes.get(run.segment)!, run))
    state.useRolled(log, placed, blocks)
  }
}
