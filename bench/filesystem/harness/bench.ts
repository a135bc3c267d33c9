import type { Row } from '../../harness/rows.ts'
import type { Scratch } from './scratch.ts'

/** What the works are given. */
export interface Bench {
  readonly scratch: Scratch
  readonly rounds: number
  /** Of what is asked for; less is quicker and says less. */
  readonly scale: number
}

/** One kind of work: does it on all sides and says what came of it. */
export type Work = (bench: Bench) => Promise<Row[]>

export function scaled(count: number, { scale }: Bench): number {
  return Math.max(1, Math.round(count * scale))
}
