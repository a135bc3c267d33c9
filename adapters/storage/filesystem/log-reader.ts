import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { fileName } from './file-header.ts'
import type { Handles } from './handles.ts'
import type { JournalBlocks } from './journal-blocks.ts'
import type { JournalBlock, Log } from './log.ts'
import type { Run } from './run.ts'
import type { RunReader } from './run-reader.ts'
import { Selection } from './selection.ts'

/** Reads logs as they are when the read begins, whatever happens to their files meanwhile. */
export class LogReader {
  readonly #handles: Handles
  readonly #runs: RunReader
  readonly #blocks: JournalBlocks

  constructor(handles: Handles, runs: RunReader, blocks: JournalBlocks) {
    this.#handles = handles
    this.#runs = runs
    this.#blocks = blocks
  }

  async read(log: Log, range: ReadRange): Promise<StoredBlock[]> {
    const selection = new Selection(range)
    const { blocks } = log
    const { length } = blocks
    const runs = neededRuns(log.runs, selection)
    // Behind a run that is not read nothing may be: what is between would be left out.
    const end = runs.length === 0 || runs.at(-1) === log.runs.at(-1) ? length : 0
    // How much has to be read was found out with these holes: with later ones the same runs would give less.
    const parts = runs.map((run) => ({ run, holes: run.holes }))
    const release = this.#handles.hold(filesOf(runs, blocks, end, selection))
    try {
      for (const { run, holes } of parts) {
        if (!selection.isFull) await this.#runs.select(log.number, run, holes, selection)
      }
      await this.#blocks.select(blocks, end, selection)
    } finally {
      await release()
    }
    return selection.blocks
  }
}

/** A read of one batch from a log with thousands of runs needs but one or two. */
function neededRuns(runs: readonly Run[], selection: Selection): readonly Run[] {
  const start = selection.firstOf(runs)
  let end = start
  let meteredBytes = 0
  while (end < runs.length && !selection.isBehind(runs[end]!)) {
    // How much the first has from the start on is not known.
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
  const start = selection.firstOf(blocks, length)
  if (start === length) return names
  const last = blocks[length - 1]!.journal.number
  for (let { number } = blocks[start]!.journal; number <= last; number++)
    names.push(fileName('journal', number))
  return names
}
