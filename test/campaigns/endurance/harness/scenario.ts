import type { World } from './world.ts'

export interface Scale {
  /** The number of rounds after a first one, which loads everything. */
  readonly rounds: number
  /** The number of followers, readers, polls or appends per round. */
  readonly many: number
}

export interface Scenario {
  readonly name: string
  /** Runs one round. Must leave nothing open; appended records may stay. */
  round(world: World, scale: Scale, number: number): Promise<void>
  /**
   * The largest growth of the memory in use at any time, in bytes, without what the storage keeps
   * (docs/limits.md).
   */
  budget(scale: Scale): number
  /** Bytes that may stay in use because buffers grew once. Default: none. */
  readonly keptBytes?: number
  /** The scales of `npm run test:full` and `npm run endurance`. */
  readonly scales: { readonly test: Scale; readonly campaign: Scale }
  /** Whether the scenario does not depend on the storage, so that tests run it in memory only. */
  readonly isOfAnyStorage?: boolean
}

const KIB = 1_024

/** The memory of an idle session in bytes, as in docs/limits.md: the measured value plus a half. */
export const SESSION_BYTES = {
  /** A read session or a long poll in this process. */
  inProcess: 8 * KIB,
  append: 4 * KIB,
  /** A response of the handler that is being read, or a long poll. */
  response: 16 * KIB,
  /** The same on a connection of its own, or on an HTTP/2 stream. Both ends are in this process. */
  connection: 64 * KIB,
}
