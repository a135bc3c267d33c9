import type { World } from './world.ts'

/** How much of it: the whole is `npm run endurance`. */
export interface Scale {
  /** How often, after a first time that everything is loaded by. */
  readonly rounds: number
  /** Followers, readers, polls or appends of a round. */
  readonly many: number
}

export interface Scenario {
  readonly name: string
  /** One round. It leaves nothing open; what it appended may stay. */
  round(world: World, scale: Scale, number: number): Promise<void>
  /** What may be in use at any time beside what was before, in bytes, and but for what the storage keeps (docs/limits.md). */
  budget(scale: Scale): number
  /** What may stay in use afterwards because buffers grew once, in bytes; none by default. */
  readonly keptBytes?: number
  /** In each run of the tests, and of the campaign. */
  readonly scales: { readonly test: Scale; readonly campaign: Scale }
  /** Of which the tests do not run it on the filesystem: what it is about does not depend on it. The campaign does. */
  readonly isOfAnyStorage?: boolean
}
