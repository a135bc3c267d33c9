/** An append, as far as the model is concerned. */
export interface AppendOperation {
  readonly kind: 'append'
  readonly recordHashes: readonly bigint[]
  readonly matchSeqNum?: number
  readonly fencingToken?: string
  /** The token that a `fence` command in the batch sets; `''` clears it. */
  readonly setFencingToken?: string
}

/** Reads cover the whole stream, from 0 to the tail. */
export type Operation = AppendOperation | { readonly kind: 'read' } | { readonly kind: 'check-tail' }

export type AppendOutcome =
  /**
   * The records are at the positions from `start` (inclusive) to `end` (exclusive). `tail` is the tail of the
   * stream in the ack.
   */
  | { readonly kind: 'appended'; readonly start: number; readonly end: number; readonly tail: number }
  /** A condition did not hold; contains the actual value. */
  | { readonly kind: 'refused'; readonly seqNum: number }
  | { readonly kind: 'refused'; readonly fencingToken: string }
  /** Failed, certainly without effect. */
  | { readonly kind: 'not-made' }
  /** May have taken effect, may still, or never will. */
  | { readonly kind: 'unknown' }

export interface StreamContents {
  /** The number of records, which is the tail: none is ever trimmed. */
  readonly tail: number
  readonly streamHash: bigint
  /** For reports only. */
  readonly recordHashes?: readonly bigint[]
}

export type ReadOutcome = ({ readonly kind: 'read' } & StreamContents) | { readonly kind: 'failed' }

export type TailOutcome = { readonly kind: 'tail'; readonly tail: number } | { readonly kind: 'failed' }

export type Outcome = AppendOutcome | ReadOutcome | TailOutcome

/** An operation of a client on a stream, with its outcome. */
export interface RecordedOperation {
  /** The number of the operation in the history. */
  readonly id: number
  readonly client: number
  readonly stream: string
  readonly operation: Operation
  readonly outcome: Outcome
  /** A monotonic time, not after the operation began. */
  readonly calledAt: number
  /** Not before the outcome was known. */
  readonly returnedAt: number
}

export type History = readonly RecordedOperation[]

/** Whether the operation is an append that changed the stream, or may have. All others only observe it. */
export function isEffective({ outcome }: RecordedOperation): boolean {
  return outcome.kind === 'appended' || outcome.kind === 'unknown'
}

export const UNKNOWN: AppendOutcome = { kind: 'unknown' }
export const NOT_MADE: AppendOutcome = { kind: 'not-made' }
export const FAILED: { readonly kind: 'failed' } = { kind: 'failed' }
