import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { FileCache } from '../files/file-cache.ts'
import { FILE_HEADER_BYTES, fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { RunReader } from '../segment/run-reader.ts'
import { SegmentWriter } from '../segment/segment-writer.ts'
import type { Change, CompactedRun } from '../state/change.ts'
import type { Log } from '../state/log.ts'
import type { Bundle, Run, Segment } from '../state/segment.ts'
import { NO_RANGES, type SeqRanges, uniteRanges } from '../state/seq-ranges.ts'
import type { State } from '../state/state.ts'

/** How many segments of a size class are compacted into one. */
const FAN_IN = 8
/** Smallest size of a class, in bytes. Each class is {@link FAN_IN} times as large as the one before. */
const CLASS_BYTES = 1_048_576
/** Limits how many logs a compaction changes: they stay in memory until the next checkpoint. */
const RUNS_MAX = 50_000
/** How many runs a group in the journal replaces: their logs are loaded while appends wait. */
const GROUP_RUNS_MAX = 64
/** The system's errors for a damaged or missing file. */
const DAMAGE = new Set(['EIO', 'ENOENT'])

export type CompactChange = Extract<Change, { kind: 'compact' }>

export interface CompactionPlan {
  readonly replaced: ReadonlySet<number>
  readonly groups: (isAborted: () => boolean) => AsyncIterable<RunGroup>
  /** Whether it was chosen because the disk is full. */
  readonly mayUseReserve: boolean
  /** A callback for when all groups were compacted. */
  readonly done: () => void
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
  return wasteful.length === 0 ? undefined : { ...wastefulPlan(state, wasteful), mayUseReserve: true }
}

/**
 * Chooses what to compact: segments that are less than half used, or small runs of a log that are spread over
 * many segments. Those move up one size class each time. So a log has few runs per class, however large it
 * is, and a record is copied once per class at most. The only small run of a log among them stays where it
 * is, because a million idle logs would be copied for nothing; its segment is compared with others again once
 * there are {@link FAN_IN} times as many. Large runs stay where they are unless the rest of their segment is
 * unused.
 */
export function planCompaction(state: State): CompactionPlan | undefined {
  const readable = [...state.segments.values()].filter(({ isUnreadable }) => !isUnreadable)
  const wasteful = readable.filter(isWasteful).slice(0, FAN_IN)
  if (wasteful.length > 0) return wastefulPlan(state, wasteful)
  const classes = new Map<number, Map<Bundle, Segment[]>>()
  for (const segment of readable) {
    if (segment.smallRuns === 0) continue
    const size = Math.floor(Math.log(Math.max(segment.smallBytes / CLASS_BYTES, 1)) / Math.log(FAN_IN))
    const level = Math.max(size, segment.bundle?.level ?? 0)
    const bundles = classes.get(level) ?? new Map<Bundle, Segment[]>()
    const bundle = segment.bundle?.level === level ? segment.bundle : { level }
    const members = bundles.get(bundle) ?? []
    members.push(segment)
    bundles.set(bundle, members)
    classes.set(level, bundles)
    if (bundles.size >= FAN_IN) return spreadPlan(state, [...bundles.values()].flat(), level)
  }
  return undefined
}

function wastefulPlan(state: State, segments: readonly Segment[]): CompactionPlan {
  const done = (): void => {}
  return { ...planOf(state, segments, { isMoved: () => true, runsMin: 1 }), mayUseReserve: false, done }
}

function spreadPlan(state: State, segments: readonly Segment[], level: number): CompactionPlan {
  const done = (): void => {
    const bundle = { level: level + 1 }
    for (const segment of segments) segment.bundle = bundle
  }
  const isMoved = (run: Run): boolean => !run.isLarge
  return { ...planOf(state, segments, { isMoved, runsMin: 2 }), mayUseReserve: false, done }
}

/**
 * Judges a segment without its header, which would make a segment with a few bytes of records look wasteful
 * forever.
 */
function isWasteful({ liveBytes, bytes, runs }: Segment): boolean {
  return runs > 0 && liveBytes < (bytes - FILE_HEADER_BYTES) / 2
}

interface Choice {
  readonly isMoved: (run: Run) => boolean
  /** The least number of runs of a group. */
  readonly runsMin: number
}

function planOf(
  state: State,
  segments: readonly Segment[],
  { isMoved, runsMin }: Choice,
): Pick<CompactionPlan, 'replaced' | 'groups'> {
  const replaced = new Set(segments.map(({ number }) => number))
  const isReplaced = (run: Run): boolean => replaced.has(run.segment) && isMoved(run)
  const groups = (isAborted: () => boolean) =>
    groupsOf(state.logs.values(), { isReplaced, runsMin, isAborted })
  return { replaced, groups }
}

async function* groupsOf(
  logs: AsyncIterable<Log>,
  {
    isReplaced,
    runsMin,
    isAborted,
  }: {
    readonly isReplaced: (run: Run) => boolean
    readonly runsMin: number
    readonly isAborted: () => boolean
  },
): AsyncGenerator<RunGroup, void, undefined> {
  for await (const { number, runs } of logs) {
    if (isAborted()) throw new Error('the storage is closing')
    let group: Run[] = []
    for (const run of runs) {
      if (isReplaced(run)) {
        group.push(run)
        continue
      }
      if (group.length >= runsMin) yield { log: number, runs: group }
      group = []
    }
    if (group.length >= runsMin) yield { log: number, runs: group }
  }
}

/**
 * Writes the new segment, makes it durable, and resolves to the change that puts it to use; undefined if
 * there is nothing to compact. Blocks are copied unchanged, so that ranges freed meanwhile can be excluded
 * from the new runs.
 */
export async function compact(
  files: Files,
  handles: FileCache,
  reader: RunReader,
  plan: CompactionPlan,
  segmentNumber: number,
  isAborted: () => boolean,
): Promise<CompactChange | undefined> {
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
): Promise<CompactChange | undefined> {
  const writer = await SegmentWriter.create(files, segmentNumber)
  try {
    const runs: CompactedRun[] = []
    let isComplete = true
    for await (const group of plan.groups(isAborted)) {
      // The remaining runs stay where they are.
      if (runs.length >= RUNS_MAX) {
        isComplete = false
        break
      }
      const merged = await copyGroup(writer, reader, group, isAborted)
      if (merged !== undefined) runs.push(merged)
    }
    if (isComplete) plan.done()
    if (runs.length === 0) {
      await writer.abandon()
      return undefined
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

/** Divides a change into those that groups of their own make, so that appends proceed between them. */
export function* compactionParts(
  { runs, ...change }: CompactChange,
  runsMax = GROUP_RUNS_MAX,
): Generator<CompactChange, void, undefined> {
  for (let i = 0; i < runs.length; i += runsMax) yield { ...change, runs: runs.slice(i, i + runsMax) }
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
