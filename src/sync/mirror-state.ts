import type { HeadwaterError } from '../model/errors.ts'

/**
 * The current activity of a mirror:
 * - `connecting`: it connects to the remote stream, or waits for the state that another tab reports
 * - `catching-up`: it copies records that were appended before; `position` is the sequence number after the
 *   last one that is stored on this device, `tail` the end of the remote stream as far as it is known
 * - `live`: everything is stored on this device, and records arrive as they are appended
 * - `waiting`: other streams of its synced basin have the connections; it gets one in its turn
 * - `offline`: it tries again at `nextAttemptAt`, in milliseconds since the Unix epoch; `error` says why
 * - `stopped`: only the app can decide how to continue, for the `reason`; the local copy is kept as it is
 * - `closed`: the mirror was closed
 *
 * ```ts
 * copy.state$.subscribe((state) => {
 *   if (state.kind === 'catching-up') console.log(`${state.position} of ${state.tail}`)
 *   if (state.kind === 'offline') console.log(state.error.code, new Date(state.nextAttemptAt))
 * })
 * ```
 */
export type MirrorState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'catching-up'; readonly position: number; readonly tail: number }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'offline'; readonly error: HeadwaterError; readonly nextAttemptAt: number }
  | StoppedMirror
  | { readonly kind: 'closed' }

/**
 * The state of a mirror that continues only after a call of `retry` or `restart`.
 *
 * ```ts
 * copy.state$.subscribe((state) => {
 *   if (state.kind !== 'stopped') return
 *   const { reason, error, gap } = state
 *   console.log(reason, error.code, gap === undefined ? '' : `${gap.from} to ${gap.to} are lost`)
 * })
 * ```
 */
export interface StoppedMirror {
  /** The mirror waits for the app. */
  readonly kind: 'stopped'
  /** Why it stopped. */
  readonly reason: StopReason
  /** The failure behind it. */
  readonly error: HeadwaterError
  /** The records that are missing between the local copy and the remote stream, if it was `trimmed`. */
  readonly gap?: MirrorGap | undefined
}

/**
 * Why a mirror stopped:
 * - `trimmed`: the remote stream no longer has the records that follow those of the local copy
 * - `replaced`: the remote stream is another one than that of the local copy, or has lost records of it
 * - `missing`: the remote stream, of which there is a local copy, was deleted
 * - `denied`: the server does not accept the access token, or the token does not permit to read the stream
 * - `failed`: another error that a retry does not resolve, such as a missing encryption key
 */
export type StopReason = 'trimmed' | 'replaced' | 'missing' | 'denied' | 'failed'

/**
 * Sequence numbers from `from` to before `to`. An empty gap means that the copy can only be continued if the
 * stream is still the same one, which cannot be proved because the last record of the copy was trimmed too.
 */
export interface MirrorGap {
  /** The sequence number after the last record of the copy. */
  readonly from: number
  /** The sequence number of the first record that the remote stream still has. */
  readonly to: number
}
