import type {
  AppendOperation,
  AppendOutcome,
  ReadOutcome,
  StreamContents,
  TailOutcome,
} from './operations.ts'
import { recordHash, streamHashOf } from './stream-hash.ts'

/** A batch to append: the `fence` command first, when there is one. */
export interface AppendCall {
  readonly bodies: readonly string[]
  readonly setFencingToken?: string
  readonly matchSeqNum?: number
  readonly fencingToken?: string
}

/** One way to a stream. What may go wrong is an outcome; what must never happen is thrown. */
export interface StreamClient {
  append(call: AppendCall): Promise<AppendOutcome>
  /** The whole stream. */
  read(): Promise<ReadOutcome>
  checkTail(): Promise<TailOutcome>
}

const encoder = new TextEncoder()

export function operationOf({ bodies, ...rest }: AppendCall): AppendOperation {
  const { setFencingToken } = rest
  const all = setFencingToken === undefined ? bodies : [setFencingToken, ...bodies]
  return { kind: 'append', recordHashes: all.map(hashOfText), ...rest }
}

export function hashOfText(body: string): bigint {
  return recordHash(encoder.encode(body))
}

/** What a reader found until it was told that it is at the tail, and where that is. */
export function contentsOf(
  recordHashes: readonly bigint[],
  tail = recordHashes.length,
): { readonly kind: 'read' } & StreamContents {
  return { kind: 'read', tail, streamHash: streamHashOf(recordHashes), recordHashes }
}
