import type { Observable } from 'rxjs'
import { isFencingToken } from '../model/append-input.ts'
import type { AppendAck } from '../model/info.ts'
import { assertMembers } from '../model/validation.ts'
import type { AnySignal } from '../runtime/abort.ts'
import type { AppendOptions, AppendTicket } from './append-session.ts'
import { CALL_OPTIONS, type CallOptions } from './call-options.ts'

/** Options of `appendAll` and `writable`. */
export type AppendAllOptions = Pick<AppendOptions, 'fencingToken' | 'signal'>

const APPEND_ALL_OPTIONS = { ...CALL_OPTIONS, fencingToken: isFencingToken }

/** What `appendAll` and `writable` use of an append session, be it of records or of JSON values. */
export interface InputSession<Input> {
  readonly acks$: Observable<AppendAck>
  submit(input: Input, options?: AppendOptions): Promise<AppendTicket>
  close(): Promise<void>
}

/** The destination of many inputs. */
export interface InputSink<Input> {
  readonly open: () => Promise<InputSession<Input>>
  readonly submit: (session: InputSession<Input>, input: Input) => Promise<AppendTicket>
  /** End the appends with their reasons. */
  readonly signals: readonly (AnySignal | undefined)[]
}

/** Returns what appends inputs to a stream, one session at a time. Throws `invalid` for invalid options. */
export function inputSink<Input>(
  stream: { appendSession(options: CallOptions): Promise<InputSession<Input>> },
  options: AppendAllOptions,
  closing: AnySignal,
): InputSink<Input> {
  assertMembers(options, APPEND_ALL_OPTIONS, 'options')
  const { fencingToken, signal } = options
  return {
    open: () => stream.appendSession({ signal }),
    submit: (session, input) => session.submit(input, { fencingToken }),
    signals: [closing, signal],
  }
}
