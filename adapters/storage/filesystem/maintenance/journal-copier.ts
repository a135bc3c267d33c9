import { BATCH_RECORDS_MAX } from '../../../../src/model/limits.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import type { Files } from '../files/files.ts'
import type { JournalContents } from '../journal/journal-blocks.ts'
import { CHUNK_BYTES } from '../segment/chunk.ts'
import { SegmentWriter } from '../segment/segment-writer.ts'
import type { JournalBlock } from '../state/log.ts'
import type { RunFacts, SegmentFacts } from '../state/segment.ts'

/** Copies blocks from journals to a new segment, which is created with the first block. */
export class JournalCopier {
  readonly #files: Files
  readonly #nextSegment: () => number
  #writer: SegmentWriter | undefined

  constructor(files: Files, nextSegment: () => number) {
    this.#files = files
    this.#nextSegment = nextSegment
  }

  /** Copies the consecutive blocks of a log from index `start` to `end` (exclusive), at least one. */
  async copy(
    log: number,
    contents: JournalContents,
    blocks: readonly JournalBlock[],
    start: number,
    end: number,
  ): Promise<RunFacts> {
    this.#writer ??= await SegmentWriter.create(this.#files, this.#nextSegment())
    this.#writer.beginRun(log)
    for (const block of joinAdjacentBlocks(contentsOf(contents, blocks, start, end))) {
      await this.#writer.add(block)
    }
    return (await this.#writer.endRun())!
  }

  async finish(): Promise<readonly SegmentFacts[]> {
    await this.#writer?.finish()
    return this.#writer === undefined ? [] : [this.#writer.facts]
  }

  async abandon(): Promise<void> {
    await this.#writer?.abandon()
  }
}

function* contentsOf(
  contents: JournalContents,
  blocks: readonly JournalBlock[],
  start: number,
  end: number,
): Generator<StoredBlock, void, undefined> {
  for (let i = start; i < end; i++) yield contents.block(blocks[i]!)
}

/**
 * Joins adjacent blocks that expire at the same time, up to the size of a chunk: a larger block would have to
 * be read whole to find one record. Blocks are joined by concatenation (`src/storage/block-codec.ts`).
 */
function* joinAdjacentBlocks(blocks: Iterable<StoredBlock>): Generator<StoredBlock, void, undefined> {
  let parts: StoredBlock[] = []
  let bytes = 0
  for (const block of blocks) {
    const first = parts[0]
    const last = parts.at(-1)
    const isNeighbour =
      first !== undefined &&
      last !== undefined &&
      last.endSeqNum === block.firstSeqNum &&
      last.expiresAt === block.expiresAt &&
      block.endSeqNum - first.firstSeqNum <= BATCH_RECORDS_MAX &&
      bytes + Math.max(block.data.length, block.meteredBytes) <= CHUNK_BYTES
    if (!isNeighbour && last !== undefined) {
      yield united(parts)
      parts = []
      bytes = 0
    }
    parts.push(block)
    bytes += Math.max(block.data.length, block.meteredBytes)
  }
  if (parts.length > 0) yield united(parts)
}

function united(parts: readonly StoredBlock[]): StoredBlock {
  const first = parts[0]!
  if (parts.length === 1) return first
  const last = parts.at(-1)!
  return {
    ...first,
    endSeqNum: last.endSeqNum,
    lastTimestamp: last.lastTimestamp,
    meteredBytes: parts.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    data: Buffer.concat(parts.map(({ data }) => data)),
  }
}
