import type { Collection, Head, LogStart } from '../../../src/storage/contract.ts'
import type { BlockFacts, JournalFile } from './log.ts'
import type { FreedRange, RunFacts } from './run.ts'
import type { SegmentFacts } from './segment.ts'
import type { SeqRanges } from './seq-ranges.ts'

/** What happens to the state: decided once, written to the journal, then applied; and applied again at each opening. */
export type Change =
  | {
      readonly kind: 'append'
      readonly log: number
      readonly block: BlockFacts
      readonly head: Head
      readonly data: Uint8Array
    }
  | {
      readonly kind: 'put'
      readonly collection: Collection
      readonly key: string
      readonly version: number
      readonly text: string
    }
  | { readonly kind: 'delete'; readonly collection: Collection; readonly key: string }
  | {
      readonly kind: 'create-log'
      readonly log: number
      readonly id: string
      readonly epoch: number
      readonly createdAt: number
      readonly start?: LogStart | undefined
    }
  | { readonly kind: 'set-epoch'; readonly log: number; readonly epoch: number }
  | { readonly kind: 'delete-log'; readonly log: number }
  | { readonly kind: 'free'; readonly log: number; readonly ranges: readonly FreedRange[] }
  | {
      readonly kind: 'merge'
      readonly segment: SegmentFacts
      /** Numbers of the segments whose runs were merged. */
      readonly replaced: readonly number[]
      readonly runs: readonly MergedRun[]
    }
  | { readonly kind: 'closed' }

export interface MergedRun {
  readonly log: number
  readonly run: RunFacts
  /** What was freed when the merge began, and is not in the new run. */
  readonly leftOut: SeqRanges
}

/** Where the frame of a change lies. */
export interface FramePlace {
  readonly journal: JournalFile
  readonly offset: number
  readonly bytes: number
}
