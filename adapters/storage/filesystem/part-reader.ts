import { type BlockPage, cutRecords, wantedPages } from '../../../src/storage/block-pages.ts'
import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { decodeOrThrowCorrupt } from './files/errors.ts'
import { type File, readExactly } from './files/files.ts'
import {
  blockPages,
  type CheckedPage,
  checkPages,
  type FrameHead,
  isolateBlocks,
  payloadEnd,
  readFrameHead,
} from './files/frame.ts'
import type { BlockFacts } from './state/log.ts'

/** A frame of more bytes may be read in part. Smaller ones are read whole, which takes a single read. */
export const PARTIAL_FRAME_BYTES = 64 * 1024

/** Enough for the header and the payload of most frames. */
const HEAD_BYTES = 4096
/** How many pages of frames stay in memory: those of 1 GiB of records, in about 12 MiB. */
const KEPT_PAGES_MAX = 131_072

/** The place of a frame. */
interface FrameAddress {
  /** Name of its file. */
  readonly name: string
  readonly salt: number
  readonly offset: number
  /** Length of the frame with its data. */
  readonly bytes: number
}

/** The only block in the data of a frame, with its pages. */
interface PagedBlock {
  readonly expiresAt: number | null
  readonly pages: readonly (BlockPage & CheckedPage)[]
  /** Offset of the data in the file. */
  readonly dataOffset: number
}

/** Returns the only block of a frame; undefined if it has several. Throws `RangeError` if it is another. */
type ReadBlockFacts = (head: FrameHead) => BlockFacts | undefined

/** Reads some pages of a large block, and the page table before them unless it is still in memory. */
export class PartReader {
  /** Least recently used first. */
  readonly #blocks = new Map<string, PagedBlock>()
  #keptPages = 0

  /**
   * Resolves to the records of the frame's block that the read wants; undefined if the whole frame has to be
   * read.
   */
  async read(
    file: File,
    address: FrameAddress,
    factsOf: ReadBlockFacts,
    range: ReadRange,
  ): Promise<StoredBlock | undefined> {
    const block = await this.#blockAt(file, address, factsOf)
    const pages = wantedPages(block.pages, range)
    const [first, last] = [pages[0], pages.at(-1)]
    if (first === undefined || last === undefined || pages.length === block.pages.length) return undefined
    const length = last.offset + last.bytes - first.offset
    const data = await readExactly(file, address.name, block.dataOffset + first.offset, length)
    decodeOrThrowCorrupt(address.name, address.offset, () => checkPages(data, pages, address.salt))
    const records = cutRecords(data, first.firstSeqNum, block.expiresAt, range)
    return records && isolateBlocks(data, [records])[0]
  }

  async #blockAt(file: File, address: FrameAddress, factsOf: ReadBlockFacts): Promise<PagedBlock> {
    const key = `${address.name} ${address.offset}`
    const block = this.#blocks.get(key) ?? (await readPagedBlock(file, address, factsOf))
    // Another read may have kept it meanwhile.
    if (!this.#blocks.delete(key)) this.#keptPages += block.pages.length
    this.#blocks.set(key, block)
    for (const [other, { pages }] of this.#blocks) {
      if (this.#keptPages <= KEPT_PAGES_MAX) break
      this.#blocks.delete(other)
      this.#keptPages -= pages.length
    }
    return block
  }
}

async function readPagedBlock(
  file: File,
  address: FrameAddress,
  factsOf: ReadBlockFacts,
): Promise<PagedBlock> {
  const { offset, bytes, salt } = address
  let head = await readExactly(file, address.name, offset, Math.min(HEAD_BYTES, bytes))
  const end = Math.min(payloadEnd(head, 0), bytes)
  if (end > head.length) head = await readExactly(file, address.name, offset, end)
  return decodeOrThrowCorrupt(address.name, address.offset, () => {
    const frame = readFrameHead(head, 0, salt)
    if (end + frame.dataBytes !== bytes) throw new RangeError('a frame has another length')
    const facts = factsOf(frame)
    const pages = facts === undefined ? [] : blockPages(frame.pages, facts)
    return { expiresAt: facts?.expiresAt ?? null, pages, dataOffset: offset + end }
  })
}
