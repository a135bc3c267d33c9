import { StorageFailure } from '../../../../src/storage/errors.ts'
import { reading } from '../failures.ts'
import { decodeHeader, FILE_HEADER_BYTES, fileName } from '../file-header.ts'
import type { BlockFacts, Log } from '../log.ts'
import { firstIndex, type SeqRange, subtractRanges } from '../seq-ranges.ts'
import { appendsOf, journalOf } from './adopted-walk.ts'
import { chunkHere, type WalkedChunk } from './chunk-walk.ts'
import type { Place } from './findings.ts'
import type { Scan } from './scan.ts'
import { SegmentFile } from './segment-file.ts'
import { indexEnd } from './segment-walk.ts'

interface Span {
  readonly firstSeqNum: number
  readonly endSeqNum: number
}

/**
 * Looks into a segment that nothing refers to. When a crash left it, its records are elsewhere too, or were trimmed or expired. That it holds others means
 * that what referred to them is gone, and the next opening removes them. What is not whole in it says nothing.
 */
export async function checkUnwanted(scan: Scan, number: number): Promise<void> {
  const name = fileName('segment', number)
  scan.begin(name)
  scan.findings.note(name, 'it is not wanted: nothing refers to it')
  let size = 0
  try {
    const file = await reading(scan.files.open(name, 'read'))
    try {
      size = await reading(file.size())
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
    // Behind the end of the journal, which is not known here, is what could not be written: others may have been given its numbers, or nobody.
    const tail = scan.state.logsByNumber.get(log)?.head.tail.seqNum ?? 0
    if (block.endSeqNum <= tail) checkHeld(scan, { file: file.name, offset }, log, [block])
  }
}

function checkHeld(scan: Scan, place: Place, number: number, blocks: readonly BlockFacts[]): void {
  const log = scan.state.logsByNumber.get(number)
  if (log === undefined) return
  let count = 0
  for (const { firstSeqNum, endSeqNum, expiresAt } of blocks) {
    if (expiresAt === null) count += missingOf(log, firstSeqNum, endSeqNum)
  }
  if (count === 0) return
  const problem = `${count} records that neither expire nor were trimmed are here, and nothing refers to them`
  scan.findings.problem(place, problem, log.id)
}

/** Those in front of the first that is not. */
async function* wholeChunks(file: SegmentFile, salt: number): AsyncGenerator<WalkedChunk, void, undefined> {
  const offsets = new Set<number>()
  for (let offset = FILE_HEADER_BYTES; offset < file.size; ) {
    const chunk = await chunkHere(file, offset, salt).catch(ignoreDamage)
    const end = chunk === undefined ? await indexEnd(file, offset, salt, offsets) : offset + chunk.bytes
    if (end === undefined) return
    if (chunk !== undefined) {
      offsets.add(offset)
      yield chunk
    }
    offset = end
  }
}

/** How many of these records the log should have and has not. */
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
