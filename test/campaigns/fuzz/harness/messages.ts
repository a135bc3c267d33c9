/** The argument of a child. */
export interface ChildParameters {
  readonly seed: number
  /** The directory of known cases. */
  readonly corpus: string
  /** The decoders in order, with the number of inputs of each. */
  readonly plan: readonly { readonly target: string; readonly inputs: number }[]
  /** The first input of the first decoder. */
  readonly from: number
  /** The number of inputs between two reports of the position. */
  readonly stride: number
}

/** The messages of a child, one per line. */
export type Message =
  /** Sent before the input at this position. The last one shows where a child hangs or dies. */
  | { readonly kind: 'at'; readonly target: string; readonly index: number }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | ({ readonly kind: 'done'; readonly target: string } & Played)
  | { readonly kind: 'end' }

/** The inputs of a decoder. */
export interface Played {
  readonly inputs: number
  /** A checksum of all inputs: the same in each run with one seed. */
  readonly digest: number
}

export interface Failure {
  readonly target: string
  /** The number of the input; absent if unknown. */
  readonly index?: number
  /** As a case of a corpus. */
  readonly input?: string
  readonly problem: string
}
