import type { StoredBlock } from '../../../src/storage/contract.ts'
import { decodeAppendFrame } from './append-frame.ts'
import { corrupt } from './failures.ts'
import { fileName } from './file-header.ts'
import type { Handles } from './handles.ts'
import type { JournalBlock } from './log.ts'
import type { Selection } from './selection.ts'

/** What is read at once, unless one block is longer. */
const WINDOW_BYTES = 1_048_576
/** What others wrote between two blocks is read with them up to here: cheaper than asking twice. */
export const GAP_BYTES_MAX = 16 * 1024

/** Reads blocks that are in journals. */
export class JournalBlocks {
  readonly #handles: Handles

  constructor(handles: Handles) {
    this.#handles = handles
  }

  /** Adds what the selection wants of the first `length` of the blocks. */
  async select(blocks: readonly JournalBlock[], length: number, selection: Selection): Promise<void> {
    for (let next = selection.firstOf(blocks, length); next < length; ) {
      if (selection.isFull || selection.isBehind(blocks[next]!)) return
      const window = windowOf(blocks, next, length, selection)
      for (const block of await this.#read(window)) selection.add(block)
      next += window.length
    }
  }

  async #read(window: readonly JournalBlock[]): Promise<StoredBlock[]> {
    const { journal, offset } = window[0]!
    const last = window.at(-1)!
    const name = fileName('journal', journal.number)
    const bytes = Buffer.allocUnsafeSlow(last.offset + last.bytes - offset)
    const filled = await this.#handles.use(name, (file) => file.read(bytes, offset))
    if (filled < bytes.length) throw corrupt(name, offset + filled, 'it is cut short')
    const blocks = window.map((place) => decodeJournalBlock(bytes, offset, place))
    const wanted = blocks.reduce((sum, { data }) => sum + data.length, 0)
    // Who keeps a few records must not keep all that others wrote between them.
    return wanted < bytes.length / 2 ? blocks.map(withOwnData) : blocks
  }
}

function withOwnData(block: StoredBlock): StoredBlock {
  return { ...block, data: new Uint8Array(block.data) }
}

/** The block at `place`; `bytes` begin at `offset` of its journal. Its data is a view. */
export function decodeJournalBlock(bytes: Buffer, offset: number, place: JournalBlock): StoredBlock {
  const start = place.offset - offset
  try {
    return decodeAppendFrame(bytes.subarray(start, start + place.bytes), place.journal.salt).block
  } catch (error) {
    throw corrupt(fileName('journal', place.journal.number), place.offset, (error as Error).message)
  }
}

/** Blocks near to each other, no more than the selection needs. */
function windowOf(
  blocks: readonly JournalBlock[],
  start: number,
  length: number,
  selection: Selection,
): readonly JournalBlock[] {
  const first = blocks[start]!
  let end = start + 1
  let { meteredBytes } = first
  for (; end < length; end++) {
    const before = blocks[end - 1]!
    const block = blocks[end]!
    const gap = block.offset - before.offset - before.bytes
    if (block.journal !== first.journal || gap > GAP_BYTES_MAX) break
    if (block.offset + block.bytes - first.offset > WINDOW_BYTES) break
    if (selection.wouldFill(meteredBytes, before.endSeqNum - first.firstSeqNum)) break
    if (selection.isBehind(block)) break
    meteredBytes += block.meteredBytes
  }
  return blocks.slice(start, end)
}
