import { mapFileErrors } from '../files/errors.ts'
import { fileName, formatVersionOf, HEADER_START_BYTES } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import { Segment, type SegmentUse } from '../state/segment.ts'
import { checkCheckpoint } from './checkpoint-check.ts'
import { checkEngineDocuments, streamsOfLogs } from './document-check.ts'
import { type Inventory, takeInventory } from './inventory.ts'
import { checkJournal, previousEndOf } from './journal-check.ts'
import { checkLogs } from './log-check.ts'
import type { VerifyReport } from './report.ts'
import { Scan, type ScanOptions } from './scan.ts'
import { checkSegment, type PlacedRun } from './segment-check.ts'
import { checkUnreferenced, walkSegment } from './unreferenced-segment.ts'

export interface VerifyFilesOptions extends ScanOptions {
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
    checkLogs(scan)
    if (options.ofEngine ?? true) checkEngineDocuments(scan)
  }
  options.signal?.throwIfAborted()
  return reportOf(scan, await formatVersionsOf(files, inventory.sizes.keys()))
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
  const runs = runsBySegment(scan)
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

function runsBySegment({ state }: Scan): ReadonlyMap<number, readonly PlacedRun[]> {
  const bySegment = new Map<number, PlacedRun[]>()
  for (const log of state.logs.values()) {
    for (const run of log.runs) {
      const runs = bySegment.get(run.segment)
      if (runs === undefined) bySegment.set(run.segment, [{ log, run }])
      else runs.push({ log, run })
    }
  }
  return bySegment
}

function reportOf(scan: Scan, formatVersions: readonly number[]): VerifyReport {
  const { state, findings, read, bytes } = scan
  let { blocks, records } = scan
  for (const log of state.logs.values()) {
    blocks += log.blocks.length
    for (const { firstSeqNum, endSeqNum } of log.blocks) records += endSeqNum - firstSeqNum
  }
  const streams = findings.problemCount === 0 ? undefined : streamsOfLogs(scan)
  const problems = findings.problems.map((problem) => {
    const stream = problem.log === undefined ? undefined : streams?.get(problem.log)
    return stream === undefined ? problem : { ...problem, stream: { basin: stream.basin, name: stream.name } }
  })
  const { problemCount, notes, noteCount } = findings
  const documents = [...state.catalog.entries()].length
  const logs = [...state.logs.values()].length
  return {
    ...{ files: read, bytes, formatVersions, documents, logs, blocks, records },
    ...{ problems, problemCount, notes, noteCount },
  }
}

/**
 * Returns the format versions of files, ascending: a directory that an earlier release has written gets files
 * of the present version as it changes. Leaves out what has no header.
 */
async function formatVersionsOf(files: Files, names: Iterable<string>): Promise<number[]> {
  const versions = new Set<number>()
  for (const name of names) {
    const version = await versionOf(files, name)
    if (version !== undefined) versions.add(version)
  }
  return [...versions].sort((a, b) => a - b)
}

/** Resolves to undefined for a damaged file, which is reported where it is checked. */
async function versionOf(files: Files, name: string): Promise<number | undefined> {
  const file = await files.open(name, 'read').catch(() => undefined)
  if (file === undefined) return undefined
  try {
    const start = new Uint8Array(HEADER_START_BYTES)
    return (await file.read(start, 0)) === start.length ? formatVersionOf(start) : undefined
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
