import type { StreamConfigInput } from '../../../src/model/config.ts'
import type { AppendAttempt, AttemptStatus } from './append-attempt.ts'

/** The name of the metadata by which the stored streams of requests are recognized. */
export const REQUEST = 'request'

/** The creation of a stream with more than a configuration. */
export interface CreationRequest {
  /** In the metadata of the stream. */
  readonly id: string
  readonly stream: string
  readonly config: StreamConfigInput
  readonly expiry: { readonly at: number } | { readonly idleSeconds: number } | undefined
  readonly fork: { readonly stream: string; readonly seqNum: number | undefined } | undefined
  /** The observed version of the source of the fork at the call. */
  readonly sourceSince: number
  /** The first records after those of the fork. */
  readonly first: AppendAttempt | undefined
  status: AttemptStatus
}
