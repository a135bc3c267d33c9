import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { Prng } from '../../../../src/runtime/prng.ts'
import { mutateBytes, randomBytes } from './mutate-bytes.ts'
import { mutateText, randomText } from './mutate-text.ts'
import type { AnyTarget, Input } from './target.ts'

const VALID_INPUTS = 100

export interface Case {
  readonly input: Input
  /** The model of a valid input. */
  readonly expected?: { readonly model: unknown }
  /** The reason why a known case is in the corpus. */
  readonly reason?: string
}

/**
 * The inputs of a campaign for one decoder: the known cases, then valid inputs, then mutations of these, each
 * determined by the seed and its number.
 */
export class Cases {
  readonly #target: AnyTarget
  readonly #seed: number
  readonly #known: readonly Case[]
  readonly #pool: readonly Input[]

  private constructor(target: AnyTarget, seed: number, known: readonly Case[]) {
    this.#target = target
    this.#seed = hashOf(`${seed} ${target.name}`)
    this.#known = known
    this.#pool = known.map(({ input }) => input)
  }

  static async of(target: AnyTarget, seed: number, found: readonly FoundCase[]): Promise<Cases> {
    const models = fc.sample(target.models, { seed, numRuns: VALID_INPUTS })
    const valid = models.map(async (model) => ({
      input: plain(await target.encode(model)),
      expected: { model },
    }))
    return new Cases(target, seed, [...found, ...(await Promise.all(valid))])
  }

  at(index: number): Case {
    return this.#known[index] ?? { input: this.#mutated(new Prng(mixed(this.#seed, index))) }
  }

  #mutated(random: Prng): Input {
    const base = random.pick(this.#pool)
    if (random.chance(0.05)) return typeof base === 'string' ? randomText(random) : randomBytes(random)
    if (random.chance(0.05)) return base
    let input = base
    do input = this.#mutate(input, random)
    while (random.chance(0.5))
    const { repair } = this.#target
    return repair !== undefined && random.chance(0.8) ? repair(input, random) : input
  }

  #mutate(input: Input, random: Prng): Input {
    const { words = [] } = this.#target
    if (typeof input === 'string') {
      return mutateText(input, random, { others: this.#pool as string[], words: words as string[] })
    }
    return mutateBytes(input, random, { others: this.#pool as Uint8Array[], words: words as Uint8Array[] })
  }
}

/** Copies a `Buffer`, whose `slice` shares memory, so that a mutation does not change other inputs. */
function plain(input: Input): Input {
  return typeof input === 'string' ? input : new Uint8Array(input)
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c_9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x0100_0193)
  return hash >>> 0
}

/** Mixes the bits, so that consecutive numbers do not give similar states. */
function mixed(seed: number, index: number): number {
  const state = Math.imul(seed ^ (index + 0x9e37_79b9), 0x85eb_ca6b)
  return Math.imul(state ^ (state >>> 13), 0xc2b2_ae35) >>> 0
}

/** An input on which a decoder once failed, or one worth keeping. */
interface FoundCase {
  readonly reason: string
  readonly input: Input
}

/** A case in a file: bytes as hexadecimal digits, text unchanged. */
type WrittenCase = { readonly why: string } & ({ readonly hex: string } | { readonly text: string })

/** Reads the cases of a decoder from `NAME.json` in the directory. */
export function foundCases(directory: string, name: string): FoundCase[] {
  const path = join(directory, `${name}.json`)
  if (!existsSync(path)) return []
  const written: WrittenCase[] = JSON.parse(readFileSync(path, 'utf8'))
  return written.map((found) => ({ reason: found.why, input: inputOf(found) }))
}

/** Encodes an input for a corpus. */
export function writtenInput(input: Input): string {
  return JSON.stringify(typeof input === 'string' ? { text: input } : { hex: toHex(input) })
}

function inputOf(found: WrittenCase): Input {
  return 'text' in found ? found.text : new Uint8Array(Buffer.from(found.hex, 'hex'))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}
