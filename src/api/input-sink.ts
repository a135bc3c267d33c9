import { assertFencingToken, type RecordInput } from '../model/append-input.ts'
import { assertMembers } from '../model/validation.ts'
import { type AnySignal, unlessAnyAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import type { AppendOptions, AppendSession, AppendTicket } from './append-session.ts'
import { CALL_OPTIONS, type CallOptions } from './call-options.ts'

/** Options of `appendAll` and `writable`. */
export type AppendAllOptions = Pick<AppendOptions, 'fencingToken' | 'signal'>

const APPEND_ALL_OPTIONS = { ...CALL_OPTIONS, fencingToken: assertFencingToken }

/** The destination of many inputs. */
export interface InputSink<Input> {
  readonly open: () => Promise<AppendSession>
  /** Rejects without an append if the signal aborts before the input is encoded. */
  readonly submit: (session: AppendSession, input: Input, signal?: AbortSignal) => Promise<AppendTicket>
  /** End the appends with their reasons. */
  readonly signals: readonly (AnySignal | undefined)[]
}

/**
 * Returns what appends inputs to a stream, one session at a time. The session knows only inputs that are
 * encoded, so that its end waits for no other. Throws `invalid` for invalid options.
 */
export function inputSink<Input>(
  stream: { appendSession(options: CallOptions): Promise<AppendSession> },
  options: AppendAllOptions,
  closing: AnySignal,
  encode: (input: Input) => MaybePromise<RecordInput | readonly RecordInput[]> = (input) =>
    input as RecordInput,
): InputSink<Input> {
  assertMembers(options, APPEND_ALL_OPTIONS, 'options')
  const { fencingToken, signal } = options
  return {
    open: () => stream.appendSession({ signal }),
    submit: async (session, input, ending) => {
      const encoded = encode(input)
      const batch = isPromise(encoded) ? await unlessAnyAborted([signal, ending], encoded) : encoded
      return session.submit(batch, { fencingToken })
    },
    signals: [closing, signal],
  }
}
