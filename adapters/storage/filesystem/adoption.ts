import { fileName } from './file-header.ts'
import type { Files } from './files.ts'
import type { EndedJournal } from './journals.ts'
import type { JournalBlock } from './log.ts'
import type { RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'
import { NO_RANGES } from './seq-ranges.ts'

/** From this length on, in bytes of its frame, a block stays where it was written. Each takes a place of its own in memory and in checkpoints. */
export const LARGE_BLOCK_BYTES = 128 * 1024
/** A journal with less than so many of the smallest is copied: adopted ones stay files of their own, and there must not be too many. */
const LARGE_BLOCKS_MIN = 8

/** Segments that are journals still, by the number of the journal. */
export type AdoptedJournals = ReadonlyMap<number, SegmentFacts>

/**
 * Gives those of the journals that are large blocks for half of their bytes at least a second name, as segments: what is written and synced already need not be
 * written once more. Leaves out those that get none, which are to be copied like all others. The directory is not synced. Does not reject.
 */
export async function adoptJournals(
  files: Files,
  journals: readonly EndedJournal[],
  blocks: Iterable<JournalBlock>,
  largeBlockBytes: number,
  nextSegment: () => number,
): Promise<AdoptedJournals> {
  const adopted = new Map<number, SegmentFacts>()
  const largeBytes = largeBytesByJournal(blocks, largeBlockBytes)
  for (const { number: journal, salt, end } of journals) {
    const large = largeBytes.get(journal) ?? 0
    if (large < LARGE_BLOCKS_MIN * largeBlockBytes || large < end / 2) continue
    const number = nextSegment()
    if (!(await link(files, fileName('journal', journal), fileName('segment', number)))) continue
    adopted.set(journal, { number, salt, bytes: end, journal })
  }
  return adopted
}

/** Takes the second names back. What stays is removed at the next opening. */
export async function disownJournals(files: Files, adopted: AdoptedJournals): Promise<void> {
  for (const { number } of adopted.values()) await files.unlink(fileName('segment', number)).catch(() => {})
}

/** The run of a block that stays where it is. */
export function adoptedRun(segment: number, block: JournalBlock): RunFacts {
  return {
    segment,
    offset: block.offset,
    bytes: block.bytes,
    indexBytes: 0,
    firstSeqNum: block.firstSeqNum,
    endSeqNum: block.endSeqNum,
    lastTimestamp: block.lastTimestamp,
    blocks: 1,
    meteredBytes: block.meteredBytes,
    liveBytes: block.bytes,
    minExpiry: block.expiresAt,
    maxExpiry: block.expiresAt,
    holes: NO_RANGES,
  }
}

function largeBytesByJournal(
  blocks: Iterable<JournalBlock>,
  largeBlockBytes: number,
): ReadonlyMap<number, number> {
  const sums = new Map<number, number>()
  for (const { journal, bytes } of blocks) {
    if (bytes >= largeBlockBytes) sums.set(journal.number, (sums.get(journal.number) ?? 0) + bytes)
  }
  return sums
}

/**
 * Resolves to whether the file has the second name. Systems do not agree on what they answer where there are none, or none left for this file, and some answer
 * what no list has: a roll that fails because of it would fail for ever, and the journal can be copied whatever the reason is.
 */
async function link(files: Files, from: string, to: string): Promise<boolean> {
  try {
    await linkAnew(files, from, to)
    return true
  } catch {
    // It may have been done, and only not been answered.
    await files.unlink(to).catch(() => {})
    return false
  }
}

async function linkAnew(files: Files, from: string, to: string): Promise<void> {
  try {
    await files.link(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // An opening found that nothing refers to it, and could not remove it.
    await files.unlink(to)
    await files.link(from, to)
  }
}
