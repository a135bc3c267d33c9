import type fc from 'fast-check'
import type { Prng } from '../../../src/storage/conformance/prng.ts'

/** What a decoder is given. */
export type Input = Uint8Array | string

/** One decoder, and what it promises. */
export interface Target<In extends Input, Model, Value> {
  readonly name: string
  /** What valid inputs say. */
  readonly models: fc.Arbitrary<Model>
  /** A valid input. */
  encode(model: Model): In | Promise<In>
  decode(input: In): Value | Promise<Value>
  /** What a valid input decodes to. Without it, only that it is not refused. */
  readonly means?: (model: Model) => unknown
  /** Whether the error is one of those that the decoder is documented to throw. */
  readonly refuses: (error: unknown) => boolean
  /** Throws unless the value is one that the decoder may give for the input. */
  verify?(value: Value, input: In): void | Promise<void>
  readonly memory?: MemoryBound
  /** What mutations put into inputs. */
  readonly words?: readonly In[]
  /** Mends what would hide everything else from the decoder: checksums. */
  readonly repair?: (input: In, random: Prng) => In
  /** How much of a campaign goes to it, in proportion to others: more for what is cheap and hears from strangers. Default: 10. */
  readonly share?: number
}

/** What a decoder may ask for, and what its value may hold, each in bytes. */
export interface MemoryBound {
  readonly perInputByte: number
  readonly beside: number
}

export const MEMORY: MemoryBound = { perInputByte: 128, beside: 4096 }

/** A target with its types forgotten. */
export type AnyTarget = Target<Input, unknown, unknown>

export function target<In extends Input, Model, Value>(of: Target<In, Model, Value>): AnyTarget {
  return of as unknown as AnyTarget
}
