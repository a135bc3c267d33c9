import { reading } from '../failures.ts'
import { fileName } from '../file-header.ts'
import type { Files } from '../files.ts'
import { checkCheckpoint } from './checkpoint-check.ts'
import { checkEngineDocuments, streamsOfLogs } from './engine-documents.ts'
import type { Inventory } from './inventory.ts'
import { takeInventory } from './inventory.ts'
import { checkJournal, previousEndOf } from './journal-check.ts'
import { checkLogs } from './log-check.ts'
import type { VerifyReport } from './report.ts'
import { Scan, type ScanOptions } from './scan.ts'
import { checkSegment, type PlacedRun } from './segment-check.ts'
import { walkSegment } from './segment-walk.ts'
import { checkUnwanted } from './unwanted-segment.ts'

export interface VerifyFilesOptions extends ScanOptions {
  /** Whether the documents are an engine's. Default: true. */
  readonly ofEngine?: boolean
}

/** Verifies what is in the files, which nobody changes meanwhile. Reads only. */
export async function verifyFiles(files: Files, options: VerifyFilesOptions = {}): Promise<VerifyReport> {
  const scan = new Scan(files, options)
  const inventory = await takeInventory(files, await reading(files.list()), scan.findings)
  scan.start([...inventory.sizes.values()].reduce((sum, size) => sum + size, 0))
  scan.isPartial = scan.findings.problemCount > 0
  if (inventory.checkpoint !== undefined) await checkCheckpoint(scan, inventory.checkpoint)
  await checkJournals(scan, inventory)
  await checkSegments(scan, inventory)
  if (scan.isPartial) {
    const file = scan.findings.problems[0]!.file
    scan.findings.note(file, 'something is lost: what rests on it could not be held to it')
  } else {
    checkLogs(scan)
    if (options.ofEngine ?? true) checkEngineDocuments(scan)
  }
  options.signal?.throwIfAborted()
  return reportOf(scan)
}

async function checkJournals(scan: Scan, { journals }: Inventory): Promise<void> {
  for (const [index, number] of journals.entries()) {
    const next = journals[index + 1]
    // The end of a journal without the next one is not known.
    const end = next === number + 1 ? await previousEndOf(scan, next) : undefined
    await checkJournal(scan, number, end)
  }
}

async function checkSegments(scan: Scan, { segments }: Inventory): Promise<void> {
  const runs = runsBySegment(scan)
  const found = new Set(segments)
  for (const segment of scan.state.segments.values()) {
    if (segment.runs === 0 || found.has(segment.number)) continue
    const file = fileName('segment', segment.number)
    // Of what was freed or merged since, nothing may be known.
    if (scan.isPartial) scan.findings.note(file, 'it is missing, and perhaps not wanted')
    else scan.findings.problem({ file, offset: 0 }, 'it is missing')
  }
  for (const number of segments) {
    const segment = scan.state.segments.get(number)
    if (segment !== undefined && segment.runs > 0) await checkSegment(scan, segment, runs.get(number) ?? [])
    else if (scan.isPartial) await walkSegment(scan, number)
    else await checkUnwanted(scan, number)
  }
}

function runsBySegment({ state }: Scan): ReadonlyMap<number, readonly PlacedRun[]> {
  const bySegment = new Map<number, PlacedRun[]>()
  for (const log of state.logsByNumber.values()) {
    for (const run of log.runs) {
      const runs = bySegment.get(run.segment)
      if (runs === undefined) bySegment.set(run.segment, [{ log, run }])
      else runs.push({ log, run })
    }
  }
  return bySegment
}

function reportOf(scan: Scan): VerifyReport {
  const { state, findings, read, bytes } = scan
  let { blocks, records } = scan
  for (const log of state.logsByNumber.values()) {
    blocks += log.blocks.length
    for (const { firstSeqNum, endSeqNum } of log.blocks) records += endSeqNum - firstSeqNum
  }
  const streams = findings.problemCount === 0 ? undefined : streamsOfLogs(scan)
  const problems = findings.problems.map((problem) => {
    const stream = problem.log === undefined ? undefined : streams?.get(problem.log)
    return stream === undefined ? problem : { ...problem, stream: { basin: stream.basin, name: stream.name } }
  })
  const { problemCount, notes, noteCount } = findings
  const documents = state.catalog.size
  const logs = state.logsByNumber.size
  return { files: read, bytes, documents, logs, blocks, records, problems, problemCount, notes, noteCount }
}
