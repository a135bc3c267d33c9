import { StorageFailure } from '../../../../src/storage/errors.ts'
import { mapFileErrors } from '../files/errors.ts'
import { decodeHeader, FILE_HEADER_BYTES, fileName } from '../files/file-header.ts'
import type { BlockFacts, Log } from '../state/log.ts'
import { firstIndex, type SeqRange, subtractRanges } from '../state/seq-ranges.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'
import { readChunkAt, SegmentFile, type WalkedChunk } from './segment-file.ts'
import { appendsOf, indexEnd, journalOf } from './segment-walk.ts'

interface Span {
  readonly firstSeqNum: number
  readonly endSeqNum: number
}

/**
 * Checks a segment that nothing refers to. If a crash left it, its records also exist elsewhere, or were
 * trimmed or expired. Other records in it mean that the references to them are lost, and the next opening
 * would remove them. Damage in it is ignored.
 */
export async function checkUnreferenced(scan: Scan, number: number): Promise<void> {
  const name = fileName('segment', number)
  scan.begin(name)
  scan.findings.note(name, 'unused: nothing refers to it')
  let size = 0
  try {
    const file = await mapFileErrors(scan.files.open(name, 'read'))
    try {
      size = await mapFileErrors(file.size())
      await checkChunks(scan, new SegmentFile(name, file, size))
    } finally {
      await file.close()
    }
  } catch (error) {
    ignoreDamage(error)
  }
  scan.bytes += size
  scan.end(size)
}

async function checkChunks(scan: Scan, file: SegmentFile): Promise<void> {
  const header = await file.read(0, Math.min(FILE_HEADER_BYTES, file.size))
  const journal = journalOf(header)
  if (journal === undefined) {
    const { salt } = decodeHeader(header, file.name)
    for await (const { offset, log, blocks } of wholeChunks(file, salt)) {
      scan.at(offset)
      checkHeld(scan, { file: file.name, offset }, log, blocks)
    }
    return
  }
  for await (const { offset, log, block } of appendsOf(scan, file, journal)) {
    // After the unknown end of the journal are records that could not be written, whose numbers may have been
    // used again.
    const tail = scan.state.logs.withNumber(log)?.head.tail.seqNum ?? 0
    if (block.endSeqNum <= tail) checkHeld(scan, { file: file.name, offset }, log, [block])
  }
}

function checkHeld(scan: Scan, place: Place, number: number, blocks: readonly BlockFacts[]): void {
  const log = scan.state.logs.withNumber(number)
  if (log === undefined) return
  let count = 0
  for (const { firstSeqNum, endSeqNum, expiresAt } of blocks) {
    if (expiresAt === null) count += missingOf(log, firstSeqNum, endSeqNum)
  }
  if (count === 0) return
  const problem = `${count} records that neither expire nor were trimmed are here, but nothing refers to them`
  scan.findings.problem(place, problem, log.id)
}

/** Yields the chunks before the first damaged one. */
async function* wholeChunks(file: SegmentFile, salt: number): AsyncGenerator<WalkedChunk, void, undefined> {
  const offsets = new Set<number>()
  for (let offset = FILE_HEADER_BYTES; offset < file.size; ) {
    const chunk = await readChunkAt(file, offset, salt).catch(ignoreDamage)
    const end = chunk === undefined ? await indexEnd(file, offset, salt, offsets) : offset + chunk.bytes
    if (end === undefined) return
    if (chunk !== undefined) {
      offsets.add(offset)
      yield chunk
    }
    offset = end
  }
}

/** How many of these records the log should have but lacks. */
function missingOf({ head, runs, blocks }: Log, firstSeqNum: number, endSeqNum: number): number {
  const wanted = { from: Math.max(firstSeqNum, head.trimPoint), to: endSeqNum }
  const left = subtractRanges(subtractRanges([wanted], spansIn(runs, wanted)), spansIn(blocks, wanted))
  return left.reduce((sum, { from, to }) => sum + to - from, 0)
}

function spansIn(spans: readonly Span[], { from, to }: SeqRange): SeqRange[] {
  const start = firstIndex(spans, ({ endSeqNum }) => endSeqNum > from)
  const end = firstIndex(spans, ({ firstSeqNum }) => firstSeqNum >= to)
  return spans.slice(start, end).map((span) => ({ from: span.firstSeqNum, to: span.endSeqNum }))
}

function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof RangeError) && !StorageFailure.is(error)) throw error
}
