import type { State } from '../state/state.ts'

/** The least gain for which to roll, as a share of the size at which journals are rolled. */
const GAIN_SHARE_MIN = 1 / 256

/**
 * What a roll would free. Only a full disk makes it worth counting: journals are small, and freed blocks in
 * them stay until they are rolled.
 */
export class RollGain {
  /** The gain that was last tried for. */
  #triedBytes = 0
  #neededBytes = 0

  /** An estimate of what the roll writes. */
  get neededBytes(): number {
    return this.#neededBytes
  }

  /** Whether a roll would free enough, and more than when it was last tried. */
  isDue(state: State, journalBytes: number, checkpointBytes: number, rollBytes: number): boolean {
    const gainMin = this.#triedBytes + rollBytes * GAIN_SHARE_MIN
    if (journalBytes - checkpointBytes < gainMin) return false
    this.#neededBytes = checkpointBytes
    for (const { blocks } of state.logs.loaded()) {
      for (const { bytes } of blocks) this.#neededBytes += bytes
    }
    const gain = journalBytes - this.#neededBytes
    if (gain < gainMin) return false
    this.#triedBytes = gain
    return true
  }

  /** To be called after a roll. */
  rolled(): void {
    this.#triedBytes = 0
  }
}
