import type { StoredBlock } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { Change, MergedRun } from './changes.ts'
import { fileName } from './file-header.ts'
import type { Files } from './files.ts'
import type { Handles } from './handles.ts'
import type { Run } from './run.ts'
import type { RunReader } from './run-reader.ts'
import type { Segment } from './segment.ts'
import { SegmentWriter } from './segment-writer.ts'
import { NO_RANGES, type SeqRanges, uniteRanges } from './seq-ranges.ts'
import type { State } from './state.ts'

/** So many segments of one size class become one. */
const FAN_IN = 8
/** Smallest size of a class, in bytes; each further class is {@link FAN_IN} times as large. */
const CLASS_BYTES = 1_048_576
/** What is noted of them must fit a frame of the journal. */
const RUNS_MAX = 500_000
/** What the system answers for a file that is damaged or gone. */
const DAMAGE = new Set(['EIO', 'ENOENT'])

export interface MergePlan {
  readonly replaced: ReadonlySet<number>
  readonly groups: readonly RunGroup[]
}

/** Runs of a log that become one: no other run lies between them. */
interface RunGroup {
  readonly log: number
  readonly runs: readonly Run[]
}

/**
 * What to merge, if anything: segments of which less than half is wanted, or small runs that are spread over many segments. The
 * latter go up a size class each time, so that a log has few runs for each class however much there is, and a record moves as often
 * as there are classes. Large runs stay where they are unless the rest of their segment is not wanted.
 */
export function planMerge(state: State): MergePlan | undefined {
  const readable = [...state.segments.values()].filter(({ isUnreadable }) => !isUnreadable)
  const wasteful = readable.filter(isWasteful).slice(0, FAN_IN)
  if (wasteful.length > 0) return planOf(state, wasteful, () => true)
  const classes = new Map<number, Segment[]>()
  for (const segment of readable) {
    if (segment.smallRuns === 0) continue
    const size = Math.floor(Math.log(Math.max(segment.smallBytes / CLASS_BYTES, 1)) / Math.log(FAN_IN))
    const others = classes.get(size) ?? []
    others.push(segment)
    classes.set(size, others)
    if (others.length >= FAN_IN) return planOf(state, others, (run) => !run.isLarge)
  }
  return undefined
}

function isWasteful({ liveBytes, bytes, runs }: Segment): boolean {
  return runs > 0 && liveBytes < bytes / 2
}

function planOf(state: State, segments: readonly Segment[], isMoved: (run: Run) => boolean): MergePlan {
  const replaced = new Set(segments.map(({ number }) => number))
  const groups: RunGroup[] = []
  for (const { number, runs } of state.logsByNumber.values()) {
    let group: Run[] = []
    for (const run of runs) {
      // What is left out stays where it is.
      if (groups.length >= RUNS_MAX) return { replaced, groups }
      if (replaced.has(run.segment) && isMoved(run)) {
        group.push(run)
        continue
      }
      if (group.length > 0) groups.push({ log: number, runs: group })
      group = []
    }
    if (group.length > 0) groups.push({ log: number, runs: group })
  }
  return { replaced, groups }
}

/**
 * Writes the new segment, durable with its name, and resolves to the change that makes it used. Blocks are copied as they are, so that what is freed meanwhile can be left
 * out of the new runs as well. Undefined when nothing is left to copy.
 */
export async function merge(
  files: Files,
  handles: Handles,
  reader: RunReader,
  plan: MergePlan,
  segmentNumber: number,
  isAborted: () => boolean,
): Promise<Extract<Change, { kind: 'merge' }>> {
  const release = handles.hold([...plan.replaced].map((number) => fileName('segment', number)))
  try {
    return await writeMerged(files, reader, plan, segmentNumber, isAborted)
  } finally {
    await release()
  }
}

async function writeMerged(
  files: Files,
  reader: RunReader,
  plan: MergePlan,
  segmentNumber: number,
  isAborted: () => boolean,
): Promise<Extract<Change, { kind: 'merge' }>> {
  const writer = await SegmentWriter.create(files, segmentNumber)
  try {
    const runs: MergedRun[] = []
    for (const group of plan.groups) {
      const merged = await copyGroup(writer, reader, group, isAborted)
      if (merged !== undefined) runs.push(merged)
    }
    await writer.finish()
    await files.syncDirectory()
    return { kind: 'merge', segment: writer.facts, replaced: [...plan.replaced], runs }
  } catch (error) {
    await writer.abandon()
    await files.unlink(fileName('segment', segmentNumber)).catch(() => {})
    throw error
  }
}

async function copyGroup(
  writer: SegmentWriter,
  reader: RunReader,
  { log, runs }: RunGroup,
  isAborted: () => boolean,
): Promise<MergedRun | undefined> {
  let leftOut: SeqRanges = NO_RANGES
  writer.beginRun(log)
  for (const run of runs) {
    // What is freed from here on is copied, and comes to be a hole of the new run.
    leftOut = uniteRanges(leftOut, run.holes)
    for await (const blocks of blocksOf(reader, log, run)) {
      if (isAborted()) throw new Error('the storage is being closed')
      for (const block of blocks) await writer.add(block)
    }
  }
  const run = await writer.endRun()
  if (run === undefined) return undefined
  // What was freed at the ends belongs to it too: it takes the place of whole runs.
  const span = { firstSeqNum: runs[0]!.firstSeqNum, endSeqNum: runs.at(-1)!.endSeqNum }
  return { log, run: { ...run, ...span }, leftOut }
}

async function* blocksOf(
  reader: RunReader,
  log: number,
  run: Run,
): AsyncGenerator<readonly StoredBlock[], void, undefined> {
  try {
    yield* reader.blocks(log, run)
  } catch (error) {
    run.home.isUnreadable ||= isDamage(error)
    throw error
  }
}

/** Unlike what passes, as too many open files do. */
function isDamage(error: unknown): boolean {
  if (!StorageFailure.is(error)) return false
  return (
    error.kind === 'corrupt' || DAMAGE.has((error.cause as NodeJS.ErrnoException | undefined)?.code ?? '')
  )
}
