import type { StoredBlock } from '../../../src/storage/contract.ts'
import { corrupt } from './failures.ts'
import { fileName } from './file-header.ts'
import type { Handles } from './handles.ts'
import { decodeJournalBlock, GAP_BYTES_MAX } from './journal-blocks.ts'
import type { EndedJournal } from './journals.ts'
import type { JournalBlock } from './log.ts'
import { firstIndex } from './seq-ranges.ts'

interface Piece {
  readonly offset: number
  readonly bytes: Buffer
}

/** What is copied of ended journals, in memory: it is wanted in another order, and there is too much of it to ask for each block. */
export class JournalContents {
  readonly #handles: Handles
  /** By the number of the journal; ascending. */
  readonly #pieces = new Map<number, readonly Piece[]>()

  constructor(handles: Handles) {
    this.#handles = handles
  }

  async readWhole({ number, end }: EndedJournal): Promise<void> {
    this.#pieces.set(number, [await this.#read(number, 0, end)])
  }

  /** Reads these blocks of the journal, and little else. */
  async readBlocks({ number }: EndedJournal, blocks: readonly JournalBlock[]): Promise<void> {
    const pieces: Piece[] = []
    const ascending = blocks.toSorted((a, b) => a.offset - b.offset)
    for (let next = 0; next < ascending.length; ) {
      const { offset } = ascending[next]!
      let end = offset
      for (; next < ascending.length && ascending[next]!.offset - end <= GAP_BYTES_MAX; next++) {
        end = ascending[next]!.offset + ascending[next]!.bytes
      }
      pieces.push(await this.#read(number, offset, end))
    }
    this.#pieces.set(number, pieces)
  }

  /** A block that was read. Its data is a view. */
  block(place: JournalBlock): StoredBlock {
    const pieces = this.#pieces.get(place.journal.number)!
    const index = firstIndex(pieces, ({ offset, bytes }) => offset + bytes.length > place.offset)
    const { bytes, offset } = pieces[index]!
    return decodeJournalBlock(bytes, offset, place)
  }

  async #read(journal: number, offset: number, end: number): Promise<Piece> {
    const bytes = Buffer.allocUnsafeSlow(end - offset)
    const name = fileName('journal', journal)
    const filled = await this.#handles.use(name, (file) => file.read(bytes, offset))
    if (filled < bytes.length) throw corrupt(name, offset + filled, 'it is cut short')
    return { offset, bytes }
  }
}
