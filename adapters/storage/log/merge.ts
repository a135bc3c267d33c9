import type { Medium } from '../media/medium.ts'
import { corrupt, decodeOrThrowCorrupt, fileName } from './format.ts'
import { decodeChunk, type SegmentWriter } from './segment.ts'
import { SequentialReader } from './sequential-reader.ts'
import type { Log, Run, Segment } from './state.ts'

/** So many segments of a similar size become one. */
const MERGED_SEGMENTS = 8
/** Larger ones are merged only if less than half of them is in use, so that a roll does not copy too much. */
const SMALL_BYTES_MAX = 128 * 1_048_576
const MERGED_BYTES_MAX = 512 * 1_048_576

/**
 * Returns segments that are worth merging: eight in which about as much is in use. So a block is copied about
 * once for every factor of eight by which the data grows, and of the segments that are mostly freed, a
 * bounded number stays.
 */
export function segmentsToMerge(segments: Iterable<Segment>): readonly Segment[] {
  const tiers = new Map<number, Segment[]>()
  for (const segment of segments) {
    const { bytes, runBytes } = segment
    if (runBytes > SMALL_BYTES_MAX && runBytes > bytes / 2) continue
    const tier = Math.floor(Math.log(runBytes + 1) / Math.log(MERGED_SEGMENTS))
    const similar = tiers.get(tier) ?? []
    tiers.set(tier, similar)
    similar.push(segment)
    if (similar.length === MERGED_SEGMENTS) return smallestOf(similar)
  }
  return []
}

/** Those that are copied at once, at least two. */
function smallestOf(segments: readonly Segment[]): readonly Segment[] {
  let bytes = 0
  return segments
    .toSorted((a, b) => a.runBytes - b.runBytes)
    .filter(({ runBytes }, index) => {
      bytes += runBytes
      return index < 2 || bytes <= MERGED_BYTES_MAX
    })
}

/** Copies the runs of several segments to another one, without what is freed. */
export class RunMerger {
  readonly #target: SegmentWriter
  /** The logs follow in the order in which the segments have them, so each is read once, front to back. */
  readonly #sources: ReadonlyMap<number, SequentialReader>

  constructor(medium: Medium, target: SegmentWriter, replaced: readonly Segment[]) {
    this.#target = target
    this.#sources = new Map(
      replaced.map(({ number, bytes }) => [
        number,
        new SequentialReader(medium, fileName('segment', number), bytes),
      ]),
    )
  }

  /** Resolves to the runs of a log afterwards. Runs that follow each other become one. */
  async merge(id: string, { runs, freedBelow }: Log): Promise<readonly Run[]> {
    const merged: Run[] = []
    let isCopying = false
    for (const run of runs) {
      const source = this.#sources.get(run.segment)
      if (source === undefined) {
        if (isCopying) merged.push((await this.#target.end())!)
        isCopying = false
        merged.push(run)
        continue
      }
      if (!isCopying) this.#target.begin(id)
      isCopying = true
      await this.#copy(source, run, id, freedBelow)
    }
    if (isCopying) merged.push((await this.#target.end())!)
    return merged
  }

  async #copy(source: SequentialReader, run: Run, id: string, freedBelow: number): Promise<void> {
    for (let offset = run.offset; offset < run.offset + run.bytes; ) {
      const bytes = await source.frame(offset)
      const { log, blocks, end } = decodeOrThrowCorrupt(source.name, offset, () => decodeChunk(bytes, 0))
      if (log !== id) throw corrupt(source.name, offset, 'the chunk is that of another log')
      for (const block of blocks) if (block.endSeqNum > freedBelow) await this.#target.add(block)
      offset += end
    }
  }
}
