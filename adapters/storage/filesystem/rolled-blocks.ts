import {
  type AdoptedJournals,
  adoptedRun,
  adoptJournals,
  disownJournals,
  LARGE_BLOCK_BYTES,
} from './adoption.ts'
import { CopyWriter } from './copy-writer.ts'
import type { Files } from './files.ts'
import type { Handles } from './handles.ts'
import { JournalContents } from './journal-contents.ts'
import type { EndedJournal } from './journals.ts'
import type { JournalBlock } from './log.ts'
import type { RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'

/** What one log has in the ended journals. */
export interface LogBlocks {
  /** Of the log. */
  readonly number: number
  readonly blocks: readonly JournalBlock[]
}

/** Where the blocks of a log lie now. */
interface RolledLog {
  readonly runs: readonly RunFacts[]
  /** How many blocks of the journals they hold. */
  readonly blocks: number
}

export interface RolledBlocks {
  readonly segments: readonly SegmentFacts[]
  /** By the number of the log. */
  readonly logs: ReadonlyMap<number, RolledLog>
}

const NOTHING: RolledBlocks = { segments: [], logs: new Map() }

export interface RollOptions {
  /** Gives each segment its number. */
  readonly nextSegment: () => number
  readonly isAborted: () => boolean
  /** From what length on blocks are left where they are; for tests. */
  readonly largeBlockBytes?: number | undefined
}

/**
 * Makes segments of the blocks of ended journals: of journals of large blocks without copying these, and one of all other blocks. They have
 * their names once the directory is synced. When it rejects, nothing is left.
 */
export async function rollBlocks(
  files: Files,
  handles: Handles,
  journals: readonly EndedJournal[],
  logs: readonly LogBlocks[],
  { nextSegment, isAborted, largeBlockBytes = LARGE_BLOCK_BYTES }: RollOptions,
): Promise<RolledBlocks> {
  if (logs.every(({ blocks }) => blocks.length === 0)) return NOTHING
  const adopted = await adoptJournals(files, journals, blocksOf(logs), largeBlockBytes, nextSegment)
  const homeOf = ({ journal, bytes }: JournalBlock): SegmentFacts | undefined =>
    bytes < largeBlockBytes ? undefined : adopted.get(journal.number)
  const writer = new CopyWriter(files, nextSegment)
  try {
    const isCopied = (block: JournalBlock): boolean => homeOf(block) === undefined
    const contents = await readCopied(handles, journals, logs, adopted, isCopied)
    const rolled = new Map<number, RolledLog>()
    for (const { number, blocks } of logs) {
      const runs: RunFacts[] = []
      for (let next = 0; next < blocks.length; ) {
        if (isAborted()) throw new Error('the storage is being closed')
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

/** Of adopted journals only what is copied: the rest would be most of it, and is not looked at. */
async function readCopied(
  handles: Handles,
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
