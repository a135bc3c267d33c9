import type { StoredBlock } from '../../../src/storage/contract.ts'
import { type LogFacts, type Snapshot, writeCheckpoint } from './checkpoint-writer.ts'
import { corrupt } from './failures.ts'
import { fileName } from './file-header.ts'
import type { Files } from './files.ts'
import type { Handles } from './handles.ts'
import { decodeJournalBlock } from './journal-blocks.ts'
import type { EndedJournal } from './journals.ts'
import { type JournalBlock, NO_BLOCKS } from './log.ts'
import { mergeNeighbours } from './merge-neighbours.ts'
import { Run, type RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'
import { SegmentWriter } from './segment-writer.ts'
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
export interface Rolled {
  readonly segment: SegmentFacts | undefined
  /** By the number of the log. */
  readonly runs: ReadonlyMap<number, { readonly run: RunFacts; readonly blocks: number }>
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
 * Makes a segment of the blocks that are in the ended journals, and a checkpoint of the noted state with it. Blocks must not be freed meanwhile. When it
 * rejects, it has changed nothing, unless it is left `undecided`.
 */
export async function roll(
  files: Files,
  handles: Handles,
  plan: RollPlan,
  segmentNumber: number,
  undecided: UndecidedRolls,
  isAborted: () => boolean,
): Promise<Rolled> {
  const { segment, runs } = await writeSegment(files, handles, plan, segmentNumber, isAborted)
  const { segments } = plan.snapshot
  const logs = plan.logs.map((log) => {
    const rolled = runs.get(log.number)
    return rolled === undefined ? log : { ...log, runs: [...log.runs, rolled.run] }
  })
  const snapshot = {
    ...plan.snapshot,
    logs,
    segments: segment === undefined ? segments : [...segments, segment],
  }
  try {
    if (segment !== undefined) await files.syncDirectory()
    const checkpointBytes = await writeCheckpoint(files, snapshot, isAborted)
    await files.syncDirectory()
    return { segment, runs, checkpointBytes }
  } catch (error) {
    undecided.add(snapshot.journal, segment?.number)
    // It is tried again before something is freed.
    await undecided.takeBack().catch(() => {})
    throw error
  }
}

/** Between two groups: lets the logs find their blocks in the segment. */
export function useRolled(state: State, { segment: facts, runs }: Rolled): void {
  if (facts === undefined) return
  const segment = state.addSegment(facts)
  for (const [number, { run, blocks }] of runs) {
    const log = state.logsByNumber.get(number)
    if (log !== undefined) state.useRolled(log, new Run(segment, run), blocks)
  }
}

async function writeSegment(
  files: Files,
  handles: Handles,
  { logs, journals }: RollPlan,
  number: number,
  isAborted: () => boolean,
): Promise<Pick<Rolled, 'segment' | 'runs'>> {
  const runs = new Map<number, { readonly run: RunFacts; readonly blocks: number }>()
  const rolled = logs.filter(({ blocks }) => blocks.length > 0)
  if (rolled.length === 0) return { segment: undefined, runs }
  const contents = await readJournals(handles, journals)
  const writer = await SegmentWriter.create(files, number)
  try {
    for (const log of rolled) {
      if (isAborted()) throw new Error('the storage is being closed')
      const blocks = log.blocks.length
      writer.beginRun(log.number)
      for (const block of mergeNeighbours(blocksOf(contents, log.blocks))) await writer.add(block)
      const run = await writer.endRun()
      runs.set(log.number, { run: run!, blocks })
    }
    await writer.finish()
  } catch (error) {
    await writer.abandon()
    throw error
  }
  return { segment: writer.facts, runs }
}

/** Whole: their blocks are wanted in another order, and there are too many to ask for each. */
async function readJournals(
  handles: Handles,
  journals: readonly EndedJournal[],
): Promise<ReadonlyMap<number, Buffer>> {
  const contents = new Map<number, Buffer>()
  for (const { number, end } of journals) {
    const bytes = Buffer.allocUnsafeSlow(end)
    const name = fileName('journal', number)
    const filled = await handles.use(name, (file) => file.read(bytes, 0))
    if (filled < end) throw corrupt(name, filled, 'it is cut short')
    contents.set(number, bytes)
  }
  return contents
}

function* blocksOf(
  contents: ReadonlyMap<number, Buffer>,
  blocks: readonly JournalBlock[],
): Generator<StoredBlock, void, undefined> {
  for (const place of blocks) yield decodeJournalBlock(contents.get(place.journal.number)!, 0, place)
}
