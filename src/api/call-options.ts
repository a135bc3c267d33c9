import { assertMembers, assertSignal, type Members, type MembersOf } from '../model/validation.ts'

/** Options of a call. */
export interface CallOptions {
  /**
   * Stops waiting: the call rejects with the signal's reason. A change that is already under way may still
   * take effect.
   */
  readonly signal?: AbortSignal | undefined
}

/** The members of {@link CallOptions}. */
export const CALL_OPTIONS: MembersOf<CallOptions> = { signal: assertSignal }

/** Validates the options of a call and returns its signal. Throws `invalid`. */
export function signalOf(
  options: CallOptions | undefined,
  members: Members = CALL_OPTIONS,
): AbortSignal | undefined {
  if (options === undefined) return undefined
  assertMembers(options, members, 'options')
  return options.signal
}
