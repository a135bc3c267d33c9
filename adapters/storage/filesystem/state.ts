import { emptyHead } from '../../../src/storage/empty-head.ts'
import { Catalog } from './catalog.ts'
import type { Change, FramePlace, MergedRun } from './changes.ts'
import { earliest } from './expiry.ts'
import { type JournalBlock, Log, NO_BLOCKS } from './log.ts'
import { type FreedRange, Run } from './run.ts'
import { Segment, type SegmentFacts } from './segment.ts'
import { coversRange, firstIndex, type SeqRange, subtractRanges, uniteRanges } from './seq-ranges.ts'

/** All that is known without reading files: documents, heads, and where blocks lie. What is here is durable. */
export class State {
  readonly catalog = new Catalog()
  readonly logsById = new Map<string, Log>()
  readonly logsByNumber = new Map<number, Log>()
  readonly segments = new Map<number, Segment>()
  /** Those of which perhaps nothing is wanted. */
  readonly #unused = new Set<Segment>()
  /** Whether segments came, or lost some of what is wanted, since somebody looked. */
  hasChangedSegments = true
  /** Greater than that of any segment that checkpoint and journals speak of. */
  nextSegment = 1
  nextLog = 1
  nextVersion = 1

  /** Does what the journal says, whether it was just written or is read at opening. */
  apply(change: Change, place: FramePlace): void {
    switch (change.kind) {
      case 'append': {
        const log = this.log(change.log)
        const { journal, offset, bytes } = place
        const { firstSeqNum, endSeqNum, lastTimestamp, meteredBytes, expiresAt } = change.block
        // Not spread: this is done for every append, and what is made so takes twice the memory.
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
        log.head = change.head
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
      case 'delete-log':
        this.#deleteLog(this.log(change.log))
        return
      case 'free':
        this.#free(this.log(change.log), change.ranges)
        return
      case 'merge': {
        const segment = this.addSegment(change.segment)
        const replaced = new Set(change.replaced)
        for (const merged of change.runs) this.#useMerged(merged, segment, replaced)
        return
      }
      case 'closed':
    }
  }

  log(number: number): Log {
    const log = this.logsByNumber.get(number)
    if (log === undefined) throw new RangeError(`there is no log ${number}`)
    return log
  }

  addLog(log: Log): void {
    this.logsById.set(log.id, log)
    this.logsByNumber.set(log.number, log)
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

  /** Replaces blocks of a log, the first ones that are in journals, by runs that hold the same. */
  useRolled(log: Log, runs: readonly Run[], blocks: number): void {
    log.runs = log.runs.concat(runs)
    log.blocks = log.blocks.length === blocks ? NO_BLOCKS : log.blocks.slice(blocks)
    for (const run of runs) run.home.add(run)
    this.hasChangedSegments = true
  }

  /** Forgets the segments of which nothing is wanted, and returns them. */
  takeUnused(): Segment[] {
    const unused = [...this.#unused].filter(({ runs }) => runs === 0)
    this.#unused.clear()
    for (const { number } of unused) this.segments.delete(number)
    return unused
  }

  /** Those that could not be removed. */
  putBackUnused(segments: Iterable<Segment>): void {
    for (const segment of segments) {
      this.segments.set(segment.number, segment)
      this.#unused.add(segment)
    }
  }

  #deleteLog(log: Log): void {
    this.logsById.delete(log.id)
    this.logsByNumber.delete(log.number)
    for (const run of log.runs) this.#drop(run)
  }

  /** However many ranges there are, the blocks in journals are gone through once. */
  #free(log: Log, ranges: readonly FreedRange[]): void {
    const inJournals: FreedRange[] = []
    const { runs } = log
    let isRunGone = false
    for (const range of ranges) {
      const run = runs[firstIndex(runs, ({ endSeqNum }) => endSeqNum > range.from)]
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

  /** What happened to the merged runs meanwhile happens to the new one: what was freed is freed, and a log that was deleted stays so. */
  #useMerged({ log: number, run: facts, leftOut }: MergedRun, segment: Segment, replaced: Set<number>): void {
    const log = this.logsByNumber.get(number)
    if (log === undefined) return
    const isSource = (run: Run): boolean =>
      replaced.has(run.segment) && run.firstSeqNum >= facts.firstSeqNum && run.endSeqNum <= facts.endSeqNum
    const sources = log.runs.filter(isSource)
    if (sources.length === 0) return
    // What no source holds any more was freed with its whole run.
    const gone = subtractRanges([{ from: facts.firstSeqNum, to: facts.endSeqNum }], sources.map(spanOf))
    const freed = sources.flatMap(({ holes }) => holes)
    const run = new Run(segment, {
      ...facts,
      blocks: sum(sources.map(({ blocks }) => blocks)),
      meteredBytes: sum(sources.map(({ meteredBytes }) => meteredBytes)),
      liveBytes: sum(sources.map(({ liveBytes }) => liveBytes)),
      minExpiry: earliest(sources.map(({ minExpiry }) => minExpiry)),
      holes: subtractRanges(uniteRanges(gone, freed), leftOut),
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
