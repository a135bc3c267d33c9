import type fc from 'fast-check'
import type { Prng } from '../../../../src/runtime/prng.ts'

/** The input of a decoder. */
export type Input = Uint8Array | string

/** A decoder and its promises. */
export interface Target<In extends Input, Model, Value> {
  readonly name: string
  /** The models of valid inputs. */
  readonly models: fc.Arbitrary<Model>
  /** Encodes a valid input. */
  encode(model: Model): In | Promise<In>
  decode(input: In): Value | Promise<Value>
  /** The expected value of a valid input. If absent, the input only must not be rejected. */
  readonly means?: (model: Model) => unknown
  /** Whether the decoder is documented to throw this error. */
  readonly refuses: (error: unknown) => boolean
  /** Throws unless the decoder may return this value for the input. */
  verify?(value: Value, input: In): void | Promise<void>
  readonly memory?: MemoryBound
  /** Fragments that mutations insert. */
  readonly words?: readonly In[]
  /** Corrects checksums, which would otherwise hide every other mutation. */
  readonly repair?: (input: In, random: Prng) => In
  /**
   * The share of a campaign, relative to other decoders: larger if it is fast and receives untrusted input.
   * Default: 10.
   */
  readonly share?: number
}

/** The bytes that a decoder may allocate, and that its value may hold. */
export interface MemoryBound {
  readonly perInputByte: number
  readonly beside: number
}

export const MEMORY: MemoryBound = { perInputByte: 128, beside: 4096 }

/** A target without its type parameters. */
export type AnyTarget = Target<Input, unknown, unknown>

export function target<In extends Input, Model, Value>(of: Target<In, Model, Value>): AnyTarget {
  return of as unknown as AnyTarget
}
