import { decodeIndex } from '../chunk.ts'
import { decodeHeader, FILE_HEADER_BYTES } from '../file-header.ts'
import { FRAME_HEADER_BYTES, frameEnd } from '../frame.ts'
import { journalOf, walkAdopted } from './adopted-walk.ts'
import { checkUnplaced } from './block-check.ts'
import { chunkHere } from './chunk-walk.ts'
import type { Scan } from './scan.ts'
import { withSegment } from './segment-check.ts'
import type { SegmentFile } from './segment-file.ts'

/** Reads a segment from its beginning to its end by nothing but its own account: for when what referred to it is lost. */
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
        const chunk = await chunkHere(file, offset, salt)
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

/** Where the index ends that begins at `offset`; undefined when it is none. The chunks of an index are those right in front of it. */
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
