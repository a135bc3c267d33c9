import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import type { FileCache } from './files/file-cache.ts'
import { fileName } from './files/file-header.ts'
import type { JournalBlockReader } from './journal/journal-blocks.ts'
import type { RunReader } from './segment/run-reader.ts'
import type { JournalBlock, Log } from './state/log.ts'
import type { Run } from './state/segment.ts'
import { Selection } from './state/selection.ts'

/** Reads logs as they are when the read begins, whatever happens to their files meanwhile. */
export class LogReader {
  readonly #handles: FileCache
  readonly #runs: RunReader
  readonly #blocks: JournalBlockReader

  constructor(handles: FileCache, runs: RunReader, blocks: JournalBlockReader) {
    this.#handles = handles
    this.#runs = runs
    this.#blocks = blocks
  }

  async read(log: Log, range: ReadRange): Promise<StoredBlock[]> {
    const selection = new Selection(range)
    const { blocks } = log
    const { length } = blocks
    const runs = neededRuns(log.runs, selection)
    // Nothing may follow a run that is not read: the blocks between would be missing.
    const end = runs.length === 0 || runs.at(-1) === log.runs.at(-1) ? length : 0
    // The runs were chosen by these holes; with later ones they would contain less.
    const parts = runs.map((run) => ({ run, holes: run.holes }))
    const release = this.#handles.hold(filesOf(runs, blocks, end, selection))
    let reading: Promise<Buffer<ArrayBuffer>> | undefined
    let ahead: Promise<Buffer<ArrayBuffer>> | undefined
    try {
      for (const [index, { run, holes }] of parts.entries()) {
        if (selection.isFull) break
        reading = ahead
        const isLast = selection.wouldFill(run.meteredBytes, run.endSeqNum - run.firstSeqNum)
        ahead = isLast ? undefined : this.#runs.readAhead(parts[index + 1]?.run)
        await this.#runs.select(log.number, run, holes, selection, reading)
      }
      await this.#blocks.select(blocks, end, selection)
    } finally {
      // After a failure they may still be in use of the files.
      await Promise.allSettled([reading, ahead])
      await release()
    }
    return selection.blocks
  }
}

/** The runs that the selection needs: one or two for a batch, even if the log has thousands. */
function neededRuns(runs: readonly Run[], selection: Selection): readonly Run[] {
  const start = selection.firstIndexIn(runs)
  let end = start
  let meteredBytes = 0
  while (end < runs.length && !selection.isPastEnd(runs[end]!)) {
    // How much of the first run comes after the start is unknown.
    if (end > start) meteredBytes += runs[end]!.meteredBytes
    end++
    if (end > start + 1 && selection.wouldFill(meteredBytes, 0)) break
  }
  return runs.slice(start, end)
}

function filesOf(
  runs: readonly Run[],
  blocks: readonly JournalBlock[],
  length: number,
  selection: Selection,
): string[] {
  const names = runs.map(({ segment }) => fileName('segment', segment))
  const start = selection.firstIndexIn(blocks, length)
  if (start === length) return names
  const last = blocks[length - 1]!.journal.number
  for (let { number } = blocks[start]!.journal; number <= last; number++)
    names.push(fileName('journal', number))
  return names
}
