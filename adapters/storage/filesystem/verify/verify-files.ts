import { mapFileErrors } from '../files/errors.ts'
import {
  distinctVersions,
  type FileKind,
  fileName,
  formatVersions,
  isTemporaryName,
  parseFileName,
} from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { JournalBlock, Log } from '../state/log.ts'
import { type Run, Segment, type SegmentUse } from '../state/segment.ts'
import { checkCheckpoint } from './checkpoint-check.ts'
import { checkEngineDocuments, streamsOfLogs } from './document-check.ts'
import { checkJournal, previousEndOf } from './journal-check.ts'
import type { Findings, Place, VerifyReport } from './report.ts'
import { Scan, type ScanOptions } from './scan.ts'
import { checkSegment, type PlacedRun } from './segment-check.ts'
import { checkUnreferenced, walkSegment } from './unreferenced-segment.ts'

interface VerifyFilesOptions extends ScanOptions {
  /** Whether an engine wrote the documents. True by default. */
  readonly ofEngine?: boolean | undefined
}

/** Verifies files that nothing else modifies. Only reads. */
export async function verifyFiles(files: Files, options: VerifyFilesOptions = {}): Promise<VerifyReport> {
  const scan = new Scan(files, options)
  const inventory = await takeInventory(files, await mapFileErrors(files.list()), scan.findings)
  scan.start([...inventory.sizes.values()].reduce((sum, size) => sum + size, 0))
  scan.isPartial = scan.findings.problemCount > 0
  if (inventory.checkpoint !== undefined) await checkCheckpoint(scan, inventory.checkpoint)
  await checkJournals(scan, inventory)
  await checkSegments(scan, inventory)
  if (scan.isPartial) {
    const file = scan.findings.problems[0]!.file
    scan.findings.note(file, 'some data is lost: what depends on it was not checked')
  } else {
    await checkLogs(scan)
    if (options.ofEngine ?? true) await checkEngineDocuments(scan)
  }
  options.signal?.throwIfAborted()
  return reportOf(scan, distinctVersions(await formatVersions(files, inventory.sizes.keys())))
}

async function checkJournals(scan: Scan, { journals }: Inventory): Promise<void> {
  for (const [index, number] of journals.entries()) {
    const next = journals[index + 1]
    // The end of a journal is unknown without the next one.
    const end = next === number + 1 ? await previousEndOf(scan, next) : undefined
    await checkJournal(scan, number, end)
  }
}

async function checkSegments(scan: Scan, { segments }: Inventory): Promise<void> {
  const runs = await runsBySegment(scan)
  const found = new Set(segments)
  if (!scan.isPartial) checkUse(scan, runs)
  for (const segment of scan.state.segments.values()) {
    if (!runs.has(segment.number) || found.has(segment.number)) continue
    const file = fileName('segment', segment.number)
    // It may have been freed or compacted since.
    if (scan.isPartial) scan.findings.note(file, 'the file is missing, but possibly unused')
    else scan.findings.problem({ file, offset: 0 }, 'the file is missing')
  }
  for (const number of segments) {
    const segment = scan.state.segments.get(number)
    const placed = runs.get(number)
    if (segment !== undefined && placed !== undefined) await checkSegment(scan, segment, placed)
    else if (scan.isPartial) await walkSegment(scan, number)
    else await checkUnreferenced(scan, number)
  }
}

/** The counts of the checkpoint, updated by the journals, decide which segments are removed and compacted. */
function checkUse({ state, findings }: Scan, runs: ReadonlyMap<number, readonly PlacedRun[]>): void {
  for (const segment of state.segments.values()) {
    const counted = new Segment(segment)
    for (const { run } of runs.get(segment.number) ?? []) counted.add(run)
    if (useOf(segment) === useOf(counted)) continue
    const problem = `its use is recorded as ${useOf(segment)}, but it is ${useOf(counted)}`
    findings.problem({ file: fileName('segment', segment.number), offset: 0 }, problem)
  }
}

function useOf({ runs, liveBytes, smallRuns, smallBytes }: SegmentUse): string {
  return `${runs} runs with ${liveBytes} bytes, ${smallRuns} small ones in ${smallBytes} bytes`
}

async function runsBySegment({ state }: Scan): Promise<ReadonlyMap<number, readonly PlacedRun[]>> {
  const bySegment = new Map<number, PlacedRun[]>()
  for await (const log of state.logs.values()) {
    for (const run of log.runs) {
      const runs = bySegment.get(run.segment)
      if (runs === undefined) bySegment.set(run.segment, [{ log, run }])
      else runs.push({ log, run })
    }
  }
  return bySegment
}

async function reportOf(scan: Scan, formatVersions: readonly number[]): Promise<VerifyReport> {
  const { state, findings, read, bytes } = scan
  let { blocks, records } = scan
  let logs = 0
  for await (const log of state.logs.values()) {
    logs++
    blocks += log.blocks.length
    for (const { firstSeqNum, endSeqNum } of log.blocks) records += endSeqNum - firstSeqNum
  }
  const streams = findings.problemCount === 0 ? undefined : await streamsOfLogs(scan)
  const problems = findings.problems.map((problem) => {
    const stream = problem.log === undefined ? undefined : streams?.get(problem.log)
    return stream === undefined ? problem : { ...problem, stream: { basin: stream.basin, name: stream.name } }
  })
  const { problemCount, notes, noteCount } = findings
  let documents = 0
  for await (const _ of state.catalog.entries()) documents++
  return {
    ...{ files: read, bytes, formatVersions, documents, logs, blocks, records },
    ...{ problems, problemCount, notes, noteCount },
  }
}

/** The files of a directory, by what an opening does with them. */
interface Inventory {
  readonly checkpoint: number | undefined
  /** Number of the first journal that the checkpoint does not cover. */
  readonly firstJournal: number
  /** Number of each journal from `firstJournal` on, ascending. */
  readonly journals: readonly number[]
  /** Number of each segment, ascending. */
  readonly segments: readonly number[]
  /** Bytes of each file to read, by name. Absent for files that cannot be opened. */
  readonly sizes: ReadonlyMap<string, number>
}

/** Reports missing files and unused ones. */
async function takeInventory(files: Files, names: readonly string[], findings: Findings): Promise<Inventory> {
  const numbers = (kind: FileKind): number[] =>
    names
      .flatMap((name) => parseFileName(name) ?? [])
      .filter((file) => file.kind === kind)
      .map(({ number }) => number)
      .sort((a, b) => a - b)
  const checkpoint = numbers('checkpoint').at(-1)
  const segments = numbers('segment')
  const firstJournal = checkpoint ?? 1
  const journals = numbers('journal').filter((number) => number >= firstJournal)
  for (const name of names) {
    const file = parseFileName(name)
    if (isTemporaryName(name)) findings.note(name, 'unfinished file')
    else if (file === undefined) continue
    else if (fileName(file.kind, file.number) !== name) {
      findings.problem({ file: name, offset: 0 }, 'not a valid file name of the storage')
    } else if (file.kind !== 'segment' && file.number < firstJournal) {
      findings.note(name, 'unused: a later checkpoint covers it')
    }
  }
  reportMissing(journals, firstJournal, checkpoint !== undefined || segments.length > 0, findings)
  const read = [
    ...(checkpoint === undefined ? [] : [fileName('checkpoint', checkpoint)]),
    ...journals.map((number) => fileName('journal', number)),
    ...segments.map((number) => fileName('segment', number)),
  ]
  return { checkpoint, firstJournal, journals, segments, sizes: await sizesOf(files, read) }
}

/** One problem per gap: a wrong name may leave a gap of millions. */
function reportMissing(
  journals: readonly number[],
  first: number,
  mustExist: boolean,
  findings: Findings,
): void {
  let next = first
  for (const number of journals) {
    if (number > next)
      findings.problem({ file: fileName('journal', next), offset: 0 }, missing(number - next))
    next = number + 1
  }
  if (mustExist && journals.length === 0) {
    findings.problem({ file: fileName('journal', first), offset: 0 }, missing(1))
  }
}

function missing(count: number): string {
  return count === 1 ? 'the file is missing' : `the file is missing, as are the next ${count - 1}`
}

async function sizesOf(files: Files, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>()
  for (const name of names) {
    const file = await files.open(name, 'read').catch(() => undefined)
    if (file === undefined) continue
    try {
      sizes.set(name, await mapFileErrors(file.size()))
    } finally {
      await file.close()
    }
  }
  return sizes
}

/** Checks for each log that the places of its blocks agree with each other and with its head. */
async function checkLogs(scan: Scan): Promise<void> {
  for await (const log of scan.state.logs.values()) {
    const place = scan.logPlaces.get(log.number)!
    try {
      checkOrder(scan, log, place)
      checkMeasure(log)
    } catch (error) {
      scan.findings.failure(place, error, log.id)
    }
  }
}

function checkOrder(scan: Scan, { number, id, head, runs, blocks }: Log, place: Place): void {
  const { tail, trimPoint } = head
  let end = 0
  let timestamp = 0
  let missing = scan.missing.get(number) ?? 0
  const gap = (from: number, to: number): void => {
    missing += Math.max(0, to - Math.max(from, trimPoint))
  }
  const spans: readonly (Run | JournalBlock)[] = [...runs, ...blocks]
  for (const [index, span] of spans.entries()) {
    if (span.firstSeqNum < end || span.endSeqNum <= span.firstSeqNum) {
      throw new RangeError(`blocks from ${span.firstSeqNum} overlap blocks up to ${end}`)
    }
    if (span.lastTimestamp < timestamp) {
      throw new RangeError(`blocks from ${span.firstSeqNum} are older than those before them`)
    }
    // Freeing at the beginning of a log leaves no gap.
    if (index > 0) gap(end, span.firstSeqNum)
    end = span.endSeqNum
    timestamp = span.lastTimestamp
  }
  if (end > tail.seqNum) throw new RangeError(`records reach ${end}, but the tail is ${tail.seqNum}`)
  // The last record was compared with the tail when it was read: a compacted run may end after its last
  // record.
  if (timestamp > tail.timestamp) {
    throw new RangeError(`the last record has timestamp ${timestamp}, but the tail has ${tail.timestamp}`)
  }
  if (spans.length > 0) gap(end, tail.seqNum)
  if (missing > 0) {
    const note = `${missing} records are missing that were not trimmed: they expired before older ones`
    scan.findings.note(place.file, note, { offset: place.offset, log: id })
  }
}

/** The size that the storage reports for the log. */
function checkMeasure({ meteredBytes, runs, blocks }: Log): void {
  let sum = 0
  for (const run of runs) sum += run.meteredBytes
  for (const block of blocks) sum += block.meteredBytes
  if (sum !== meteredBytes) {
    throw new RangeError(`the log counts ${meteredBytes} metered bytes, but its blocks have ${sum}`)
  }
}
