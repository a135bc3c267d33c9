import { vi } from 'vitest'
import type { Change, FramePlace } from '../../../adapters/storage/filesystem/changes.ts'
import { State } from '../../../adapters/storage/filesystem/state.ts'
import type { SimulatedDisk, Taken } from './simulated-disk.ts'

type Met = Change['kind'] | 'fence' | 'trim' | 'commit of several changes'

/** What the recoveries of a test met, so that it cannot lose a part of its subject and still succeed. */
export class Coverage {
  /** How many disks were recovered. */
  points = 0
  /** What was done again out of a journal. */
  readonly replayed = new Set<Met>()
  /** Kinds of files, `.tmp` those that were being made. */
  readonly files = new Set<string>()
  readonly taken = new Set<Taken>()

  /** The crashed disk, while it is opened. */
  async recovering<Result>(disk: SimulatedDisk, open: () => Promise<Result>): Promise<Result> {
    this.points++
    for (const name of disk.names) this.files.add(name.replace(/-\d+/, ''))
    for (const one of disk.taken) this.taken.add(one)
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
