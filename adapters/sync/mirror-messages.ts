import { HeadwaterError } from '../../src/model/errors.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'

/** The messages between the mirrors of one copy. */
export type MirrorMessage =
  | { readonly kind: 'state'; readonly state: MirrorState }
  /** Asks for the state. */
  | { readonly kind: 'hello' }
  /** Asks the mirror that copies to connect at once. */
  | { readonly kind: 'retry' }
  /** The copy was replaced by another one. */
  | { readonly kind: 'replaced' }

type PlainKind = Exclude<MirrorMessage['kind'], 'state'>

const PLAIN_KINDS: readonly PlainKind[] = ['hello', 'retry', 'replaced']

/** The members of an error that other tabs get. */
type SentError = Pick<HeadwaterError, 'code' | 'message' | 'mayHaveEffects' | 'field'>

/** Returns the message as a value that can be cloned. */
export function encodeMessage(message: MirrorMessage): unknown {
  if (message.kind !== 'state' || !('error' in message.state)) return message
  const { code, message: text, mayHaveEffects, field } = message.state.error
  const error: SentError = { code, message: text, mayHaveEffects, field }
  return { ...message, state: { ...message.state, error } }
}

/** Returns the message that a value is; undefined for another value: any script of an origin can send one. */
export function decodeMessage(value: unknown): MirrorMessage | undefined {
  const { kind, state } = Object(value) as { readonly kind?: unknown; readonly state?: unknown }
  if (PLAIN_KINDS.includes(kind as PlainKind)) return { kind: kind as PlainKind }
  if (kind !== 'state' || typeof state !== 'object' || state === null) return undefined
  const { error } = state as { readonly error?: SentError | undefined }
  if (error === undefined) return { kind, state: state as MirrorState }
  return {
    kind,
    state: { ...state, error: new HeadwaterError(error.code, error.message, error) } as MirrorState,
  }
}
