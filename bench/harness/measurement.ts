import type { Params } from './host.ts'

/** One kind of work, done by headwater and by rivals in the same run: a row of the table for each rival. */
export interface Measurement {
  /** What is done. `{size}` stands for the size that the sides are prepared for. */
  readonly work: string
  readonly ours: Contestant
  readonly rivals: readonly Rival[]
  /** The unit of the figures, such as "an append". */
  readonly each: string
  /** The most units of a turn, where they use up memory or disk. */
  readonly most?: number
  /** The number of units of a turn, where time does not determine it. */
  readonly exactly?: number | 'size'
  /** Passed to all sides as `size`, less with `--quick`. */
  readonly size?: number
  /** Whether each turn has processes of its own, without warm-up. */
  readonly isFresh?: boolean
  /** A factor for the number of rounds, because short work varies more. */
  readonly rounds?: number
  /** Whether it needs the packages of `bench/package.json`. */
  readonly needsPeers?: boolean
}

export interface Contestant {
  /** A file of `bench/programs`. */
  readonly program: string
  readonly side: string
  readonly params?: Params
  /** A side of the same program that fills the directory, once, in a process of its own. */
  readonly fill?: string
  /** A side of `programs/load.ts` that does the work, while the first process, a server, is measured. */
  readonly load?: { readonly side: string; readonly params?: Params }
}

export interface Rival {
  readonly against: string
  /** If absent, the row has only our own figure. */
  readonly contestant?: Contestant
  /** What the ratio compares. Default: wall time. `growth` is that of the memory of the process. */
  readonly by?: Quantity
  /** The required ratio. */
  readonly atLeast?: number | undefined
  /** The required upper limit of our own wall time, in microseconds a unit. */
  readonly atMostMicroseconds?: number
  /** Returns why this rival cannot be measured here. */
  readonly unavailable?: () => string | undefined
}

export type Quantity = 'wall' | 'cpu' | 'growth'
