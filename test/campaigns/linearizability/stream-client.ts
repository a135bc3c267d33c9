import type {
  AppendOperation,
  AppendOutcome,
  ReadOutcome,
  StreamContents,
  TailOutcome,
} from './operations.ts'
import { recordHash, streamHashOf } from './stream-hash.ts'

/** A batch to append, beginning with a `fence` command if there is one. */
export interface AppendCall {
  readonly bodies: readonly string[]
  readonly setFencingToken?: string
  readonly matchSeqNum?: number
  readonly fencingToken?: string
}

/** A client of one stream. Expected failures are outcomes; failures that must never occur are thrown. */
export interface StreamClient {
  append(call: AppendCall): Promise<AppendOutcome>
  /** Reads the whole stream. */
  read(): Promise<ReadOutcome>
  checkTail(): Promise<TailOutcome>
}

/** Returns the client of a stream. Called once. */
export type Connect = (stream: string, client: number) => StreamClient

/** A system whose histories are recorded. */
export interface OpenTarget {
  readonly connect: Connect
  /** Returns a client of a stream without faults. */
  readonly reader: (stream: string) => StreamClient
  close(): Promise<void>
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

/** The records that a reader found before it reported the tail, and that tail. */
export function contentsOf(
  recordHashes: readonly bigint[],
  tail = recordHashes.length,
): { readonly kind: 'read' } & StreamContents {
  return { kind: 'read', tail, streamHash: streamHashOf(recordHashes), recordHashes }
}
