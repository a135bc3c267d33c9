/** Something to append, as far as the model is concerned. */
export interface AppendOperation {
  readonly kind: 'append'
  readonly recordHashes: readonly bigint[]
  readonly matchSeqNum?: number
  readonly fencingToken?: string
  /** The token that a `fence` command of the batch sets; `''` clears it. */
  readonly setFencingToken?: string
}

/** Reads are of the whole stream, from 0 to the tail. */
export type Operation = AppendOperation | { readonly kind: 'read' } | { readonly kind: 'check-tail' }

export type AppendOutcome =
  /** Its records have the places from `start` up to but without `end`. `tail` is the stream's, as the ack tells it. */
  | { readonly kind: 'appended'; readonly start: number; readonly end: number; readonly tail: number }
  /** A condition did not hold: what the stream had instead. */
  | { readonly kind: 'refused'; readonly seqNum: number }
  | { readonly kind: 'refused'; readonly fencingToken: string }
  /** Failed, and certainly without effect. */
  | { readonly kind: 'not-made' }
  /** May have taken effect, or may still, or never. */
  | { readonly kind: 'unknown' }

export interface StreamContents {
  /** How many records there are, which is the tail: none is ever trimmed. */
  readonly tail: number
  readonly streamHash: bigint
  /** For reports only. */
  readonly recordHashes?: readonly bigint[]
}

export type ReadOutcome = ({ readonly kind: 'read' } & StreamContents) | { readonly kind: 'failed' }

export type TailOutcome = { readonly kind: 'tail'; readonly tail: number } | { readonly kind: 'failed' }

export type Outcome = AppendOutcome | ReadOutcome | TailOutcome

/** What a client asked of a stream and what came of it. */
export interface RecordedOperation {
  /** Its number in the history. */
  readonly id: number
  readonly client: number
  readonly stream: string
  readonly operation: Operation
  readonly outcome: Outcome
  /** A number that rises with time: not after the operation began. */
  readonly calledAt: number
  /** Not before its outcome was known. */
  readonly returnedAt: number
}

export type History = readonly RecordedOperation[]

/** Whether it is an append that changed the stream or may have; all others only tell of it. */
export function isEffective({ outcome }: RecordedOperation): boolean {
  return outcome.kind === 'appended' || outcome.kind === 'unknown'
}

export const UNKNOWN: AppendOutcome = { kind: 'unknown' }
export const NOT_MADE: AppendOutcome = { kind: 'not-made' }
export const FAILED: { readonly kind: 'failed' } = { kind: 'failed' }
