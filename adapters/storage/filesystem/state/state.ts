import { macrotask } from '../../../../src/runtime/macrotask.ts'
import type { Head } from '../../../../src/storage/contract.ts'
import { emptyHead, withWriteStateChange } from '../../../../src/storage/heads.ts'
import { lowerBound } from '../../../../src/storage/ordered-list.ts'
import { DirectoryCatalog } from './catalog.ts'
import type { Change, CompactedRun, FramePlace } from './change.ts'
import { type JournalBlock, Log, NO_JOURNAL_BLOCKS } from './log.ts'
import { DirectoryLogs } from './logs.ts'
import { earliest, type FreedRange, Run, Segment, type SegmentFacts } from './segment.ts'
import { coversRange, type SeqRange, subtractRanges, uniteRanges } from './seq-ranges.ts'

/** How many logs are loaded in one turn of the event loop. */
const TURN_LOGS = 256

/**
 * Everything that is known without reading files: documents, heads and the places of blocks. All of it is
 * durable.
 */
export class State {
  readonly catalog = new DirectoryCatalog()
  readonly segments = new Map<number, Segment>()
  readonly logs = new DirectoryLogs(this.segments)
  /** Segments that may have no run left. */
  readonly #unused = new Set<Segment>()
  /** Whether segments were added, or lost runs, since compaction last looked. */
  hasChangedSegments = true
  /** Greater than the number of any segment in the checkpoint and the journals. */
  nextSegment = 1
  nextLog = 1
  nextVersion = 1

  /** Applies a change that was just written, or that an opening reads from a journal. */
  apply(change: Change, place: FramePlace): void {
    switch (change.kind) {
      case 'append': {
        const log = this.log(change.log)
        const { journal, offset, bytes } = place
        const { firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, expiresAt } = change.block
        // Not spread: this runs for every append, and a spread object takes twice the memory.
        log.add({
          journal,
          offset,
          bytes,
          firstSeqNum,
          endSeqNum,
          lastTimestamp,
          meteredBytes,
          expiresAt,
        })
        log.head = headAfter(log.head, change)
        return
      }
      case 'put': {
        const { collection, key, text, version } = change
        this.catalog.set(collection, key, { text, version })
        this.nextVersion = Math.max(this.nextVersion, version + 1)
        return
      }
      case 'delete':
        this.catalog.delete(change.collection, change.key)
        return
      case 'create-log':
        this.addLog(new Log(change.log, change.id, emptyHead(change.epoch, change.createdAt, change.start)))
        return
      case 'set-epoch': {
        const log = this.log(change.log)
        log.head = { ...log.head, epoch: change.epoch }
        return
      }
      case 'extend': {
        const log = this.log(change.log)
        log.head = { ...log.head, extensions: change.extensions }
        return
      }
      case 'delete-log':
        this.#deleteLog(this.log(change.log))
        return
      case 'free':
        this.#free(this.log(change.log), change.ranges)
        return
      case 'compact': {
        const segment = this.#compactedSegment(change.segment)
        const replaced = new Set(change.replaced)
        for (const merged of change.runs) this.#applyCompaction(merged, segment, replaced)
        return
      }
      case 'closed':
    }
  }

  /** Loads the logs that {@link apply} needs, until {@link release}. Undefined if all are in memory. */
  prepare(change: Change): Promise<void> | undefined {
    if (change.kind === 'compact') return this.#retainAll(change.runs)
    return 'log' in change ? this.logs.retain(change.log) : undefined
  }

  async #retainAll(runs: readonly CompactedRun[]): Promise<void> {
    for (const [index, { log }] of runs.entries()) {
      // Groups of earlier releases have up to 50,000.
      if (index > 0 && index % TURN_LOGS === 0) await macrotask()
      const loading = this.logs.retain(log)
      if (loading !== undefined) await loading
    }
  }

  /** Drops what was loaded for changes. */
  release(): void {
    this.catalog.release()
    this.logs.release()
  }

  /** How many documents and logs were changed since the checkpoint. They are in memory. */
  get changedSize(): number {
    return this.catalog.changedSize + this.logs.changedSize
  }

  /** Captures documents and logs for a checkpoint, until {@link rebase} or {@link thaw}. */
  freeze(): void {
    this.catalog.freeze()
    this.logs.freeze()
  }

  /** Gives up the checkpoint. */
  thaw(): void {
    this.catalog.thaw()
    this.logs.thaw()
  }

  /** Continues with a checkpoint of what was captured. */
  rebase({ catalog, logs }: State): void {
    this.catalog.rebase(catalog)
    this.logs.rebase(logs)
  }

  /** Returns a log that is in memory, or was prepared, to modify it. */
  log(number: number): Log {
    const log = this.logs.change(number)
    if (log === undefined) throw new RangeError(`log ${number} does not exist`)
    return log
  }

  addLog(log: Log): void {
    this.logs.add(log)
    this.nextLog = Math.max(this.nextLog, log.number + 1)
  }

  addSegment(facts: SegmentFacts): Segment {
    const segment = new Segment(facts)
    this.segments.set(segment.number, segment)
    this.#unused.add(segment)
    this.hasChangedSegments = true
    this.nextSegment = Math.max(this.nextSegment, segment.number + 1)
    return segment
  }

  /**
   * Replaces the first `blocks` blocks of a log in journals by runs with the same records, which their
   * segments count.
   */
  replaceRolledBlocks(log: Log, runs: readonly Run[], blocks: number): void {
    log.runs = log.runs.concat(runs)
    log.blocks = log.blocks.length === blocks ? NO_JOURNAL_BLOCKS : log.blocks.slice(blocks)
    this.hasChangedSegments = true
  }

  /** Removes a run whose log does not exist any more. */
  dropRun(run: Run): void {
    this.#drop(run)
  }

  /** Removes and returns the segments without runs, except for the one with this number. */
  takeUnusedSegments(except?: number): Segment[] {
    const unused = [...this.#unused].filter(({ runs, number }) => runs === 0 && number !== except)
    const kept = except === undefined ? undefined : this.segments.get(except)
    this.#unused.clear()
    if (kept !== undefined) this.#unused.add(kept)
    for (const { number } of unused) this.segments.delete(number)
    return unused
  }

  /** Adds segments again whose files could not be removed. */
  returnUnusedSegments(segments: Iterable<Segment>): void {
    for (const segment of segments) {
      this.segments.set(segment.number, segment)
      this.#unused.add(segment)
    }
  }

  #deleteLog(log: Log): void {
    this.logs.delete(log)
    for (const run of log.runs) this.#drop(run)
  }

  /** Scans the blocks in journals once, however many ranges there are. */
  #free(log: Log, ranges: readonly FreedRange[]): void {
    const inJournals: FreedRange[] = []
    const { runs } = log
    let isRunGone = false
    for (const range of ranges) {
      const run = runs[lowerBound(runs, ({ endSeqNum }) => endSeqNum > range.from)]
      if (run === undefined || run.firstSeqNum > range.from) inJournals.push(range)
      else {
        run.free(range)
        this.hasChangedSegments = true
        isRunGone ||= run.blocks === 0
        if (run.blocks === 0) this.#drop(run)
      }
      log.meteredBytes -= range.meteredBytes
    }
    if (isRunGone) log.runs = runs.filter(({ blocks }) => blocks > 0)
    if (inJournals.length > 0)
      log.blocks = log.blocks.filter((block) => !coversRange(inJournals, spanOf(block)))
  }

  #drop(run: Run): void {
    run.home.remove(run)
    if (run.home.runs === 0) this.#unused.add(run.home)
    this.hasChangedSegments = true
  }

  /** Several groups may put a segment to use. Throws `RangeError` if another one has its number. */
  #compactedSegment(facts: SegmentFacts): Segment {
    const known = this.segments.get(facts.number)
    if (known === undefined) return this.addSegment(facts)
    const isSame = known.salt === facts.salt && known.bytes === facts.bytes && known.journal === facts.journal
    if (!isSame) throw new RangeError(`segment number ${facts.number} was used before`)
    return known
  }

  /**
   * Whatever happened to the source runs since applies to the new run: freed ranges stay freed, and a deleted
   * log stays deleted.
   */
  #applyCompaction(
    { log: number, run: facts, omitted }: CompactedRun,
    segment: Segment,
    replaced: Set<number>,
  ): void {
    const log = this.logs.change(number)
    if (log === undefined) return
    const isSource = (run: Run): boolean =>
      replaced.has(run.segment) && run.firstSeqNum >= facts.firstSeqNum && run.endSeqNum <= facts.endSeqNum
    const sources = log.runs.filter(isSource)
    if (sources.length === 0) return
    // Ranges that no source run contains now were freed with their whole run.
    const gone = subtractRanges([{ from: facts.firstSeqNum, to: facts.endSeqNum }], sources.map(spanOf))
    const freed = sources.flatMap(({ holes }) => holes)
    const run = new Run(segment, {
      ...facts,
      blocks: sum(sources.map(({ blocks }) => blocks)),
      meteredBytes: sum(sources.map(({ meteredBytes }) => meteredBytes)),
      liveBytes: sum(sources.map(({ liveBytes }) => liveBytes)),
      minExpiry: earliest(sources.map(({ minExpiry }) => minExpiry)),
      holes: subtractRanges(uniteRanges(gone, freed), omitted),
    })
    log.runs = log.runs
      .filter((other) => other === sources[0] || !isSource(other))
      .map((other) => (other === sources[0] ? run : other))
    for (const source of sources) this.#drop(source)
    segment.add(run)
  }
}

function spanOf({ firstSeqNum, endSeqNum }: Run | JournalBlock): SeqRange {
  return { from: firstSeqNum, to: endSeqNum }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Journals do not repeat with each append what appends keep. */
function headAfter(before: Head, { head, writeState: change }: Extract<Change, { kind: 'append' }>): Head {
  const { extensions } = before
  const isRead = head.writeState === undefined
  const writeState = isRead && change ? withWriteStateChange(before.writeState, change) : before.writeState
  if (extensions === undefined && (!isRead || writeState === undefined)) return head
  return { ...head, ...(extensions && { extensions }), ...(isRead && writeState && { writeState }) }
}
