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
import type { JournalBlock } from '../state/log.ts'
import type { RunFacts, SegmentFacts } from '../state/segment.ts'
import { JournalCopier } from './journal-copier.ts'

/** The blocks of one log in the ended journals. */
export interface LogBlocks {
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
  /** By the number of the log. */
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
