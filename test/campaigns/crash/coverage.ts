import { vi } from 'vitest'
import type { Change, FramePlace } from '../../../adapters/storage/filesystem/state/change.ts'
import { State } from '../../../adapters/storage/filesystem/state/state.ts'
import type { LostChange, SimulatedDisk } from '../../storage/filesystem/simulated-disk.ts'

type Met = Change['kind'] | 'fence' | 'trim' | 'commit of several changes'

/**
 * What the recoveries of a test replayed and found, so that the test fails if its workloads no longer cover a
 * case.
 */
export class Coverage {
  /** How many disks were recovered. */
  points = 0
  /** Changes replayed from a journal. */
  readonly replayed = new Set<Met>()
  /** Kinds of files. Those that were being written end with `.tmp`. */
  readonly files = new Set<string>()
  readonly losses = new Set<LostChange>()

  /** Opens a crashed disk and records what it contains. */
  async recovering<Result>(disk: SimulatedDisk, open: () => Promise<Result>): Promise<Result> {
    this.points++
    for (const name of disk.names) this.files.add(name.replace(/-\d+/, ''))
    for (const loss of disk.lostChanges) this.losses.add(loss)
    const apply = vi.spyOn(State.prototype, 'apply')
    try {
      return await open()
    } finally {
      let before: FramePlace | undefined
      for (const [change, place] of apply.mock.calls) {
        this.#replayed(change)
        if (place === before) this.replayed.add('commit of several changes')
        before = place
      }
      apply.mockRestore()
    }
  }

  #replayed(change: Change): void {
    this.replayed.add(change.kind)
    if (change.kind !== 'append') return
    if (change.head.fencingToken !== '') this.replayed.add('fence')
    if (change.head.trims.length > 0) this.replayed.add('trim')
  }
}
