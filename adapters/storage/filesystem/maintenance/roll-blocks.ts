import { BATCH_RECORDS_MAX } from '../../../../src/model/limits.ts'
import { mergedBlock } from '../../../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../../../src/storage/contract.ts'
import type { FileCache } from '../files/file-cache.ts'
import type { Files } from '../files/files.ts'
import { JournalContents } from '../journal/journal-blocks.ts'
import type { EndedJournal } from '../journal/journals.ts'
import {
  type AdoptedJournals,
  adoptedRun,
  adoptJournals,
  disownJournals,
  LARGE_BLOCK_BYTES,
} from '../segment/adoption.ts'
import { CHUNK_BYTES } from '../segment/chunk.ts'
import { SegmentWriter } from '../segment/segment-writer.ts'
import type { JournalBlock } from '../state/log.ts'
import type { RunFacts, SegmentFacts } from '../state/segment.ts'

/** The blocks of one log in the ended journals. */
interface LogBlocks {
  /** Number of the log. */
  readonly number: number
  readonly blocks: readonly JournalBlock[]
}

/** The runs that hold the blocks of a log. */
interface RolledLog {
  readonly runs: readonly RunFacts[]
  /** How many blocks of the log they replace. */
  readonly blocks: number
}

export interface RolledBlocks {
  readonly segments: readonly SegmentFacts[]
  /** The logs by their numbers. */
  readonly logs: ReadonlyMap<number, RolledLog>
}

const NOTHING: RolledBlocks = { segments: [], logs: new Map() }

export interface RollOptions {
  /** Returns the number of the next segment. */
  readonly nextSegment: () => number
  readonly isAborted: () => boolean
  /** Overrides the size from which blocks are not copied; for tests. */
  readonly largeBlockBytes?: number | undefined
}

/**
 * Moves the blocks of ended journals to segments: adopts journals of large blocks without copying these, and
 * copies all other blocks to one segment. The segments are durable once the directory is synced. Leaves
 * nothing if it rejects.
 */
export async function rollBlocks(
  files: Files,
  handles: FileCache,
  journals: readonly EndedJournal[],
  logs: readonly LogBlocks[],
  { nextSegment, isAborted, largeBlockBytes = LARGE_BLOCK_BYTES }: RollOptions,
): Promise<RolledBlocks> {
  if (logs.every(({ blocks }) => blocks.length === 0)) return NOTHING
  const adopted = await adoptJournals(files, journals, blocksOf(logs), largeBlockBytes, nextSegment)
  const homeOf = ({ journal, bytes }: JournalBlock): SegmentFacts | undefined =>
    bytes < largeBlockBytes ? undefined : adopted.get(journal.number)
  const writer = new JournalCopier(files, nextSegment)
  try {
    const isCopied = (block: JournalBlock): boolean => homeOf(block) === undefined
    const contents = await readCopied(handles, journals, logs, adopted, isCopied)
    const rolled = new Map<number, RolledLog>()
    for (const { number, blocks } of logs) {
      const runs: RunFacts[] = []
      for (let next = 0; next < blocks.length; ) {
        if (isAborted()) throw new Error('the storage is closing')
        const home = homeOf(blocks[next]!)
        if (home !== undefined) {
          runs.push(adoptedRun(home.number, blocks[next++]!))
          continue
        }
        const start = next
        while (next < blocks.length && isCopied(blocks[next]!)) next++
        runs.push(await writer.copy(number, contents, blocks, start, next))
      }
      if (runs.length > 0) rolled.set(number, { runs, blocks: blocks.length })
    }
    const copies = await writer.finish()
    return { segments: [...adopted.values(), ...copies], logs: rolled }
  } catch (error) {
    await writer.abandon()
    await disownJournals(files, adopted)
    throw error
  }
}

/** Reads only the blocks of adopted journals that are copied: most of such a journal is large blocks. */
async function readCopied(
  handles: FileCache,
  journals: readonly EndedJournal[],
  logs: readonly LogBlocks[],
  adopted: AdoptedJournals,
  isCopied: (block: JournalBlock) => boolean,
): Promise<JournalContents> {
  const contents = new JournalContents(handles)
  const copied = new Map<number, JournalBlock[]>(journals.map(({ number }) => [number, []]))
  for (const block of blocksOf(logs)) if (isCopied(block)) copied.get(block.journal.number)!.push(block)
  for (const journal of journals) {
    const blocks = copied.get(journal.number)!
    if (blocks.length === 0) continue
    if (adopted.has(journal.number)) await contents.readBlocks(journal, blocks)
    else await contents.readWhole(journal)
  }
  return contents
}

function* blocksOf(logs: readonly LogBlocks[]): Generator<JournalBlock, void, undefined> {
  for (const { blocks } of logs) yield* blocks
}

/** Copies blocks from journals to a new segment, which is created with the first block. */
class JournalCopier {
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
    // For a single block, as many logs have, the generators would cost more than the copy.
    const joined =
      end - start === 1
        ? [contents.block(blocks[start]!)]
        : joinAdjacentBlocks(contentsOf(contents, blocks, start, end))
    for (const block of joined) await this.#writer.add(block)
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
  return mergedBlock(parts, (data) => Buffer.concat(data))
}
