/** What a child is told, as its argument. */
export interface Orders {
  readonly seed: number
  /** Directory of the cases that were found before. */
  readonly corpus: string
  /** The decoders in their order, with how many inputs each gets. */
  readonly plan: readonly { readonly target: string; readonly inputs: number }[]
  /** Of the first decoder: where to begin. */
  readonly from: number
  /** It tells where it is before so many inputs each. */
  readonly stride: number
}

/** What a child tells, a line each. */
export type Message =
  /** Before it goes on there: the last one that is heard of a child that hangs or dies tells where. */
  | { readonly kind: 'at'; readonly target: string; readonly index: number }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | ({ readonly kind: 'done'; readonly target: string } & Played)
  | { readonly kind: 'end' }

/** What a decoder was given. */
export interface Played {
  readonly inputs: number
  /** A checksum of them all: the same in each run with one seed. */
  readonly digest: number
}

export interface Failure {
  readonly target: string
  /** Which input of the decoder's; absent when it cannot be told. */
  readonly index?: number
  /** As a case of a corpus. */
  readonly input?: string
  readonly problem: string
}
