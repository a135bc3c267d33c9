import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { FileCache } from '../files/file-cache.ts'
import { FILE_HEADER_BYTES, fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { RunReader } from '../segment/run-reader.ts'
import { SegmentWriter } from '../segment/segment-writer.ts'
import type { Change, CompactedRun } from '../state/change.ts'
import type { Log } from '../state/log.ts'
import type { Run, Segment } from '../state/segment.ts'
import { NO_RANGES, type SeqRanges, uniteRanges } from '../state/seq-ranges.ts'
import type { State } from '../state/state.ts'

/** How many segments of a size class are compacted into one. */
const FAN_IN = 8
/** Smallest size of a class, in bytes. Each class is {@link FAN_IN} times as large as the one before. */
const CLASS_BYTES = 1_048_576
/** The change that describes the result must fit into a journal frame. */
const RUNS_MAX = 500_000
/** The system's errors for a damaged or missing file. */
const DAMAGE = new Set(['EIO', 'ENOENT'])

export interface CompactionPlan {
  readonly replaced: ReadonlySet<number>
  readonly groups: Iterable<RunGroup>
  /** Whether it was chosen because the disk is full. */
  readonly mayUseReserve: boolean
}

/** Runs of a log with no other run between them, which become one. */
interface RunGroup {
  readonly log: number
  readonly runs: readonly Run[]
}

/**
 * Chooses what to compact if the disk is full: segments that are less than half used, those with the least in
 * use first, as far as that fits into `bytesMax`.
 */
export function planCompactionOnFullDisk(state: State, bytesMax: number): CompactionPlan | undefined {
  let bytes = 0
  const wasteful = [...state.segments.values()]
    .filter((segment) => !segment.isUnreadable && isWasteful(segment))
    .sort((a, b) => a.liveBytes - b.liveBytes)
    .slice(0, FAN_IN)
    .filter(({ liveBytes }) => {
      bytes += liveBytes
      return bytes <= bytesMax
    })
  return wasteful.length === 0 ? undefined : { ...planOf(state, wasteful, () => true), mayUseReserve: true }
}

/**
 * Chooses what to compact: segments that are less than half used, or small runs that are spread over many
 * segments. Small runs move up one size class each time. So a log has few runs per class, however large it
 * is, and a record is copied once per class at most. Large runs stay where they are unless the rest of their
 * segment is unused.
 */
export function planCompaction(state: State): CompactionPlan | undefined {
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

/**
 * Judges a segment without its header, which would make a segment with a few bytes of records look wasteful
 * for ever.
 */
function isWasteful({ liveBytes, bytes, runs }: Segment): boolean {
  return runs > 0 && liveBytes < (bytes - FILE_HEADER_BYTES) / 2
}

function planOf(state: State, segments: readonly Segment[], isMoved: (run: Run) => boolean): CompactionPlan {
  const replaced = new Set(segments.map(({ number }) => number))
  const isReplaced = (run: Run): boolean => replaced.has(run.segment) && isMoved(run)
  return { replaced, groups: groupsOf(state.logs.scan(), isReplaced), mayUseReserve: false }
}

function* groupsOf(
  logs: Iterable<Log>,
  isReplaced: (run: Run) => boolean,
): Generator<RunGroup, void, undefined> {
  for (const { number, runs } of logs) {
    let group: Run[] = []
    for (const run of runs) {
      if (isReplaced(run)) {
        group.push(run)
        continue
      }
      if (group.length > 0) yield { log: number, runs: group }
      group = []
    }
    if (group.length > 0) yield { log: number, runs: group }
  }
}

/**
 * Writes the new segment, makes it durable, and resolves to the change that puts it to use. Blocks are copied
 * unchanged, so that ranges freed meanwhile can be excluded from the new runs.
 */
export async function compact(
  files: Files,
  handles: FileCache,
  reader: RunReader,
  plan: CompactionPlan,
  segmentNumber: number,
  isAborted: () => boolean,
): Promise<Extract<Change, { kind: 'compact' }>> {
  const release = handles.hold([...plan.replaced].map((number) => fileName('segment', number)))
  try {
    return await writeCompacted(files, reader, plan, segmentNumber, isAborted)
  } finally {
    await release()
  }
}

async function writeCompacted(
  files: Files,
  reader: RunReader,
  plan: CompactionPlan,
  segmentNumber: number,
  isAborted: () => boolean,
): Promise<Extract<Change, { kind: 'compact' }>> {
  const writer = await SegmentWriter.create(files, segmentNumber)
  try {
    const runs: CompactedRun[] = []
    for (const group of plan.groups) {
      // The remaining runs stay where they are.
      if (runs.length >= RUNS_MAX) break
      const merged = await copyGroup(writer, reader, group, isAborted)
      if (merged !== undefined) runs.push(merged)
    }
    await writer.finish()
    await files.syncDirectory()
    return { kind: 'compact', segment: writer.facts, replaced: [...plan.replaced], runs }
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
): Promise<CompactedRun | undefined> {
  let omitted: SeqRanges = NO_RANGES
  writer.beginRun(log)
  for (const run of runs) {
    // What is freed from here on is copied, and becomes a hole of the new run.
    omitted = uniteRanges(omitted, run.holes)
    for await (const blocks of blocksOf(reader, log, run)) {
      if (isAborted()) throw new Error('the storage is closing')
      for (const block of blocks) await writer.add(block)
    }
  }
  const run = await writer.endRun()
  if (run === undefined) return undefined
  // The new run also covers ranges freed at its ends, because it replaces whole runs.
  const span = { firstSeqNum: runs[0]!.firstSeqNum, endSeqNum: runs.at(-1)!.endSeqNum }
  return { log, run: { ...run, ...span }, omitted }
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

/** Unlike transient errors, such as too many open files. */
function isDamage(error: unknown): boolean {
  if (!StorageFailure.is(error)) return false
  return (
    error.kind === 'corrupt' || DAMAGE.has((error.cause as NodeJS.ErrnoException | undefined)?.code ?? '')
  )
}
