import type { StoredBlock } from '../../../src/storage/contract.ts'
import type { Files } from './files.ts'
import type { JournalContents } from './journal-contents.ts'
import type { JournalBlock } from './log.ts'
import { mergeNeighbours } from './merge-neighbours.ts'
import type { RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'
import { SegmentWriter } from './segment-writer.ts'

/** Makes the segment of what is copied from journals, if anything is. */
export class CopyWriter {
  readonly #files: Files
  readonly #nextSegment: () => number
  #writer: SegmentWriter | undefined

  constructor(files: Files, nextSegment: () => number) {
    this.#files = files
    this.#nextSegment = nextSegment
  }

  /** Copies blocks of the log that follow each other, from `start` up to `end`, of which there is one at least. */
  async copy(
    log: number,
    contents: JournalContents,
    blocks: readonly JournalBlock[],
    start: number,
    end: number,
  ): Promise<RunFacts> {
    this.#writer ??= await SegmentWriter.create(this.#files, this.#nextSegment())
    this.#writer.beginRun(log)
    for (const block of mergeNeighbours(contentsOf(contents, blocks, start, end))) {
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
