/** An append of a `fence` command, if there is one, and a record for each body. */
export interface Append {
  readonly kind: 'append'
  /** No two appends of a history have a body in common. */
  readonly bodies: readonly string[]
  /** The token that the `fence` command sets; `''` clears it. */
  readonly setFencingToken?: string
  readonly matchSeqNum?: number
  readonly fencingToken?: string
}

/** Reads cover the whole stream, from 0 to the tail. */
export type Operation = Append | { readonly kind: 'read' } | { readonly kind: 'check-tail' }

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

export interface ReadOutcome {
  readonly kind: 'read'
  /** The number of records, which is the tail: none is ever trimmed. */
  readonly tail: number
  /** The bodies of the records. */
  readonly bodies: readonly string[]
}

export type Outcome =
  | AppendOutcome
  | ReadOutcome
  | { readonly kind: 'tail'; readonly tail: number }
  /** A read or a tail check without a result. */
  | { readonly kind: 'failed' }

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

/** The bodies of all records of an append. That of a `fence` command is its token. */
export function recordsOf({ bodies, setFencingToken }: Append): readonly string[] {
  return setFencingToken === undefined ? bodies : [setFencingToken, ...bodies]
}
