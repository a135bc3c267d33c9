import { fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { EndedJournal } from '../journal/journals.ts'
import type { JournalBlock } from '../state/log.ts'
import type { RunFacts, SegmentFacts } from '../state/segment.ts'
import { NO_RANGES } from '../state/seq-ranges.ts'

/**
 * Blocks whose frame has at least this many bytes stay where they were written. Each takes an entry of its
 * own in memory and in checkpoints.
 */
export const LARGE_BLOCK_BYTES = 128 * 1024
/**
 * A journal with fewer bytes than this many of the smallest large blocks is copied: adopted journals stay
 * separate files, and there must not be too many.
 */
const LARGE_BLOCKS_MIN = 8

/** Segments that are adopted journals, by the number of the journal. */
export type AdoptedJournals = ReadonlyMap<number, SegmentFacts>

/**
 * Links each journal as a segment if at least half of it is large blocks, so that their bytes are not written
 * again. Leaves out journals that cannot be linked, which are copied instead. Does not sync the directory.
 * Never rejects.
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

/** Removes the links. A link that stays is removed at the next opening. */
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
 * Resolves to whether the file was linked. Any error means that it was not: systems report a missing or
 * exhausted support for links in different ways. The journal can always be copied, while a roll that failed
 * because of a link would fail forever.
 */
async function link(files: Files, from: string, to: string): Promise<boolean> {
  try {
    await linkReplacing(files, from, to)
    return true
  } catch {
    // The link may exist although the call failed.
    await files.unlink(to).catch(() => {})
    return false
  }
}

async function linkReplacing(files: Files, from: string, to: string): Promise<void> {
  try {
    await files.link(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // A leftover that an opening could not remove.
    await files.unlink(to)
    await files.link(from, to)
  }
}
