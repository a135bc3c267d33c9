import type { Connect } from './record-history.ts'
import type { StreamClient } from './stream-client.ts'

/** A system whose histories are recorded. */
export interface OpenTarget {
  readonly connect: Connect
  /** Returns a client of a stream without faults. */
  readonly reader: (stream: string) => StreamClient
  close(): Promise<void>
}
