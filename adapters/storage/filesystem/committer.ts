import { macrotask } from '../../../src/engine/macrotask.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import type { Change } from './changes.ts'
import { failureOf } from './failures.ts'
import { GROUP_BYTES_MAX, GroupWriter } from './group.ts'
import type { Journals, WritableJournal } from './journals.ts'
import { Stage } from './stage.ts'
import type { State } from './state.ts'

/** A call that waits to be written. */
interface Waiting {
  /** What it takes in the journal, about. */
  readonly bytes: number
  readonly stage: (stage: Stage) => readonly Change[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface Staged {
  readonly call: Waiting
  readonly changes: readonly Change[]
  readonly place: { readonly offset: number; readonly bytes: number } | undefined
}

interface Refused {
  readonly call: Waiting
  readonly error: unknown
}

/** What the committer lets run beside it. */
export interface Housekeeping {
  /** Called after each group. */
  groupWritten(): void
  /** While it has fallen behind, nothing more is written: resolves when it has caught up. */
  readonly behind: Promise<unknown> | undefined
}

/** Work that needs the state to stand still. */
type Exclusive = () => Promise<void>

/**
 * Group commit. One group is on its way to the disk at a time; the calls that come meanwhile make up the next. Calls are judged
 * when their group is made, against the state that is durable and those before them in the group: so what follows a failed
 * group conflicts by itself.
 */
export class Committer {
  readonly #state: State
  readonly #journals: Journals
  readonly #housekeeping: Housekeeping
  readonly #group = new GroupWriter()
  #waiting: Waiting[] = []
  readonly #exclusive: Exclusive[] = []
  #running: Promise<void> | undefined
  /** Why nothing can be written any more: the state is not what the journal says. */
  #broken: StorageFailure | undefined
  /** Tells a loop that is held back that there is exclusive work. */
  #wake: () => void = () => {}

  constructor(state: State, journals: Journals, housekeeping: Housekeeping) {
    this.#state = state
    this.#journals = journals
    this.#housekeeping = housekeeping
  }

  /** Resolves when the changes are durable and can be seen; `stage` throws when they cannot be made. */
  commit(bytes: number, stage: (stage: Stage) => readonly Change[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ bytes, stage, resolve, reject })
      this.#run()
    })
  }

  /** Runs `work` between two groups. */
  exclusively<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#exclusive.push(async () => {
        try {
          if (this.#broken !== undefined) throw this.#broken
          resolve(await work())
        } catch (error) {
          reject(error)
        }
      })
      this.#wake()
      this.#run()
    })
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
  }

  #run(): void {
    this.#running ??= this.#loop()
  }

  async #loop(): Promise<void> {
    try {
      do {
        // Lets everybody who was told of the last group come with the next call, so that they share a group.
        await macrotask()
        for (const work of this.#exclusive.splice(0)) await work()
        if (this.#waiting.length === 0) continue
        const { behind } = this.#housekeeping
        if (behind !== undefined) {
          if (this.#exclusive.length === 0) await Promise.race([behind, this.#woken()])
          continue
        }
        await this.#write(this.#take())
        this.#housekeeping.groupWritten()
      } while (this.#waiting.length > 0 || this.#exclusive.length > 0)
    } finally {
      // In the same turn: a call that comes from here on finds no loop that would leave it behind.
      this.#running = undefined
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #take(): Waiting[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && (count === 0 || bytes < GROUP_BYTES_MAX)) {
      bytes += this.#waiting[count++]!.bytes
    }
    if (count === this.#waiting.length) {
      const all = this.#waiting
      this.#waiting = []
      return all
    }
    return this.#waiting.splice(0, count)
  }

  async #write(calls: readonly Waiting[]): Promise<void> {
    let journal: WritableJournal
    try {
      if (this.#broken !== undefined) throw this.#broken
      journal = await this.#journals.ready()
    } catch (error) {
      for (const call of calls) call.reject(error)
      return
    }
    this.#group.begin(journal.file.salt)
    const { staged, refused } = this.#stage(calls)
    try {
      if (!this.#group.isEmpty) await this.#journals.write(this.#group.end(journal.sequence))
    } catch (error) {
      for (const { call } of staged) call.reject(error)
      // A refusal may rest on what was not written.
      for (const { call } of refused) call.reject(failureOf(error, true))
      return
    }
    for (const { call, error } of refused) call.reject(error)
    try {
      for (const one of staged) this.#apply(one, journal)
    } catch (error) {
      this.#broken = brokenBy(error, true)
      // Those that were told that it is done are not told again.
      for (const { call } of staged) call.reject(brokenBy(error, false))
    }
  }

  #apply({ call, changes, place }: Staged, { file, end }: WritableJournal): void {
    if (place !== undefined) {
      const written = { journal: file, offset: end + place.offset, bytes: place.bytes }
      for (const change of changes) this.#state.apply(change, written)
    }
    call.resolve()
  }

  #stage(calls: readonly Waiting[]): { readonly staged: Staged[]; readonly refused: Refused[] } {
    const stage = new Stage(this.#state)
    const staged: Staged[] = []
    const refused: Refused[] = []
    for (const call of calls) {
      stage.begin()
      try {
        const changes = call.stage(stage)
        const place = changes.length > 0 ? this.#group.add(changes) : undefined
        staged.push({ call, changes, place })
      } catch (error) {
        stage.rollback()
        refused.push({ call, error: refusalOf(error) })
      }
    }
    return { staged, refused }
  }
}

function brokenBy(error: unknown, nothingWritten: boolean): StorageFailure {
  const message = `the storage must be opened again, for a change could not be applied: ${(error as Error).message}`
  return new StorageFailure('io', message, { nothingWritten, cause: error })
}

function refusalOf(error: unknown): unknown {
  if (StorageConflict.is(error) || StorageFailure.is(error)) return error
  return new StorageFailure('io', (error as Error).message, { nothingWritten: true, cause: error })
}
