import { StorageFailure } from '../../../../src/storage/errors.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'
import { ByteReader } from '../files/bytes.ts'
import { decodeHeader, FILE_HEADER_BYTES, type FileIdentity, fileName } from '../files/file-header.ts'
import { FRAME_HEADER_BYTES, frameEnd } from '../files/frame.ts'
import { SequentialReader } from '../files/sequential-reader.ts'
import { type JournalGroup, walkGroups } from '../journal/journal-reader.ts'
import { decodeIndex } from '../segment/chunk.ts'
import { type AppendedBlock, readChanges } from '../state/change.ts'
import type { BlockFacts, Log } from '../state/log.ts'
import { type SeqRange, subtractRanges } from '../state/seq-ranges.ts'
import { checkUnplaced } from './block-check.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'
import { readChunkAt, type SegmentFile, type WalkedChunk, withSegment } from './segment-check.ts'

/** Reads a segment from beginning to end without references to it, which are lost. */
export async function walkSegment(scan: Scan, number: number): Promise<void> {
  await withSegment(scan, number, async (file) => {
    const header = await file.read(0, Math.min(FILE_HEADER_BYTES, file.size))
    const journal = journalOf(header)
    if (journal !== undefined) {
      await walkAdopted(scan, file, journal)
      return
    }
    const { salt } = decodeHeader(header, file.name)
    const chunkOffsets = new Set<number>()
    for (let offset = FILE_HEADER_BYTES; offset < file.size; ) {
      scan.at(offset)
      const place = { file: file.name, offset }
      try {
        const chunk = await readChunkAt(file, offset, salt)
        chunkOffsets.add(offset)
        offset += chunk.bytes
        for (const block of chunk.blocks) checkUnplaced(scan, block, place)
      } catch (error) {
        const end = await indexEnd(file, offset, salt, chunkOffsets)
        if (end === undefined) {
          scan.findings.failure(place, error)
          return
        }
        offset = end
      }
    }
  })
}

/**
 * The end of the index at `offset`; undefined if there is no index. Its chunks must be those directly before
 * it.
 */
async function indexEnd(
  file: SegmentFile,
  offset: number,
  salt: number,
  chunkOffsets: ReadonlySet<number>,
): Promise<number | undefined> {
  try {
    const bytes = frameEnd(await file.read(offset, FRAME_HEADER_BYTES), 0)
    const chunks = decodeIndex(await file.read(offset, bytes), 0, salt)
    const start = offset - chunks.reduce((sum, chunk) => sum + chunk.bytes, 0)
    const isAll = chunks.every((chunk) => chunkOffsets.has(start + chunk.offset))
    return isAll && chunks.length > 1 ? offset + bytes : undefined
  } catch {
    return undefined
  }
}

const LETTER_OFFSET = 4
const NUMBER_OFFSET = 8
const LETTER_OF_JOURNALS = 'J'.charCodeAt(0)

/** The identity of an adopted journal by its header; undefined if the segment is not one. */
function journalOf(header: Buffer): FileIdentity | undefined {
  if (header.length < NUMBER_OFFSET + 8 || header[LETTER_OFFSET] !== LETTER_OF_JOURNALS) return undefined
  return { kind: 'journal', number: Number(header.readBigUInt64LE(NUMBER_OFFSET)) }
}

/** An append of an adopted journal, and the offset of its frame. */
interface PlacedAppend extends AppendedBlock {
  readonly offset: number
}

/** Yields the complete appends. */
async function* appendsOf(
  scan: Scan,
  { name }: SegmentFile,
  journal: FileIdentity,
): AsyncGenerator<PlacedAppend, void, undefined> {
  const reader = await SequentialReader.open(scan.files, name)
  try {
    const header = await reader.header(journal)
    for await (const step of walkGroups(reader, header, undefined)) {
      scan.at(reader.offset)
      if (step.kind !== 'group') continue
      for (const { fields, data, offset } of step.group.frames) {
        for (const change of readChanges(new ByteReader(fields), data)) {
          if (change.kind !== 'append') continue
          yield { log: change.log, block: change.block, offset: step.group.offset + offset }
        }
      }
    }
  } finally {
    await reader.close()
  }
}

/**
 * Reads all blocks of an adopted journal without references to them, including small ones that were copied
 * elsewhere. Its end is unknown.
 */
async function walkAdopted(scan: Scan, { name }: SegmentFile, journal: FileIdentity): Promise<void> {
  const reader = await SequentialReader.open(scan.files, name)
  try {
    const header = await reader.header(journal)
    for await (const step of walkGroups(reader, header, undefined)) {
      scan.at(reader.offset)
      if (step.kind === 'group') checkGroup(scan, name, step.group)
      else if (step.kind === 'damage')
        scan.findings.problem({ file: name, offset: step.offset }, step.problem)
      else scan.findings.note(name, `${reader.size - step.offset} incomplete bytes`, step)
    }
  } finally {
    await reader.close()
  }
}

function checkGroup(scan: Scan, file: string, group: JournalGroup): void {
  for (const { fields, data, offset } of group.frames) {
    const place = { file, offset: group.offset + offset }
    try {
      for (const change of readChanges(new ByteReader(fields), data)) {
        if (change.kind === 'append') checkUnplaced(scan, change.block, place)
      }
    } catch (error) {
      scan.findings.failure(place, error)
    }
  }
}

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
  scan.findings.note(fileName('segment', number), 'unused: nothing refers to it')
  await withSegment(scan, number, (file) => checkChunks(scan, file), ignoreDamage)
}

async function checkChunks(scan: Scan, file: SegmentFile): Promise<void> {
  const header = await file.read(0, Math.min(FILE_HEADER_BYTES, file.size))
  const journal = journalOf(header)
  if (journal === undefined) {
    const { salt } = decodeHeader(header, file.name)
    for await (const { offset, log, blocks } of wholeChunks(file, salt)) {
      scan.at(offset)
      await checkHeld(scan, { file: file.name, offset }, log, blocks)
    }
    return
  }
  for await (const { offset, log, block } of appendsOf(scan, file, journal)) {
    // After the unknown end of the journal are records that could not be written, whose numbers may have been
    // used again.
    const tail = (await scan.state.logs.loadNumber(log))?.head.tail.seqNum ?? 0
    if (block.endSeqNum <= tail) await checkHeld(scan, { file: file.name, offset }, log, [block])
  }
}

async function checkHeld(
  scan: Scan,
  place: Place,
  number: number,
  blocks: readonly BlockFacts[],
): Promise<void> {
  const log = await scan.state.logs.loadNumber(number)
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
  const start = lowerBound(spans, ({ endSeqNum }) => endSeqNum > from)
  const end = lowerBound(spans, ({ firstSeqNum }) => firstSeqNum >= to)
  return spans.slice(start, end).map((span) => ({ from: span.firstSeqNum, to: span.endSeqNum }))
}

function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof RangeError) && !StorageFailure.is(error)) throw error
}
