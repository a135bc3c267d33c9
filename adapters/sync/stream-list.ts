import { compareUtf8 } from '../../src/model/bytes.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import { StateCell } from './state-cell.ts'

/** A stream of a synced basin. */
export interface BasinStream {
  /** The name of the stream. */
  readonly name: string
  /** The state of its mirror, in whichever tab that runs: see `MirrorState`. */
  readonly state: MirrorState
}

const WAITING: MirrorState = { kind: 'waiting' }

/** The known streams of a synced basin with their states, in the order of their names. */
export class BasinStreamList {
  readonly #cell = new StateCell<readonly BasinStream[]>([])
  readonly #indexes = new Map<string, number>()

  get streams(): readonly BasinStream[] {
    return this.#cell.current
  }

  get streams$() {
    return this.#cell.states$
  }

  has(name: string): boolean {
    return this.#indexes.has(name)
  }

  stateOf(name: string): MirrorState {
    const index = this.#indexes.get(name)
    return index === undefined ? WAITING : this.streams[index]!.state
  }

  /** Replaces the names. Streams that stay keep their states. */
  setNames(names: Iterable<string>): void {
    const sorted = [...new Set(names)].sort(compareUtf8)
    if (sorted.length === this.streams.length && sorted.every((name) => this.has(name))) return
    const streams = sorted.map((name) => {
      const index = this.#indexes.get(name)
      return index === undefined ? { name, state: WAITING } : this.streams[index]!
    })
    this.#indexes.clear()
    for (const [index, name] of sorted.entries()) this.#indexes.set(name, index)
    this.#cell.set(streams)
  }

  setState(name: string, state: MirrorState): void {
    const index = this.#indexes.get(name)
    if (index === undefined) return
    const streams = [...this.streams]
    streams[index] = { name, state }
    this.#cell.set(streams)
  }

  /** Ends the observable. */
  end(): void {
    this.#cell.end(this.streams)
  }
}
