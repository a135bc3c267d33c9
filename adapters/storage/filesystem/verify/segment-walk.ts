import { ByteReader } from '../files/bytes.ts'
import { decodeHeader, FILE_HEADER_BYTES, type FileIdentity } from '../files/file-header.ts'
import { FRAME_HEADER_BYTES, frameEnd } from '../files/frame.ts'
import { SequentialReader } from '../files/sequential-reader.ts'
import { type JournalGroup, walkGroups } from '../journal/journal-reader.ts'
import { decodeIndex } from '../segment/chunk.ts'
import { type AppendedBlock, readChanges } from '../state/change.ts'
import { checkUnplaced } from './block-check.ts'
import type { Scan } from './scan.ts'
import { withSegment } from './segment-check.ts'
import { readChunkAt, type SegmentFile } from './segment-file.ts'

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
export async function indexEnd(
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
export function journalOf(header: Buffer): FileIdentity | undefined {
  if (header.length < NUMBER_OFFSET + 8 || header[LETTER_OFFSET] !== LETTER_OF_JOURNALS) return undefined
  return { kind: 'journal', number: Number(header.readBigUInt64LE(NUMBER_OFFSET)) }
}

/** An append of an adopted journal, and the offset of its frame. */
interface PlacedAppend extends AppendedBlock {
  readonly offset: number
}

/** Yields the complete appends. */
export async function* appendsOf(
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
