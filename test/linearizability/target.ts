import type { Connect } from './record-history.ts'
import type { StreamClient } from './stream-client.ts'

/** Something that histories are recorded against. */
export interface OpenTarget {
  readonly connect: Connect
  /** A way to a stream that nothing disturbs. */
  readonly reader: (stream: string) => StreamClient
  close(): Promise<void>
}
