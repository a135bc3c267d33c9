import { JsonCodec } from '../../src/api/json-codec.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { FoldSnapshot } from '../../src/sync/fold-snapshot.ts'
import type { FoldOptions } from './options.ts'

/** Converts the values of a fold to what a snapshot stores, and back. */
export class FoldCodec<State> {
  readonly #options: Pick<FoldOptions<State, never>, 'encode' | 'decode'>
  readonly #writer = new JsonCodec<unknown>(undefined)
  readonly #reader: JsonCodec<unknown>

  /** Throws `invalid` for an object that is not a schema. */
  constructor(options: Pick<FoldOptions<State, never>, 'encode' | 'decode' | 'schema'>) {
    this.#options = options
    this.#reader = new JsonCodec<unknown>(options.schema)
  }

  /** Throws `invalid` for a value that JSON cannot represent or would silently change. */
  encode(state: State): Pick<FoldSnapshot, 'isJson' | 'state'> {
    const { encode } = this.#options
    const encoded = encode === undefined ? state : encode(state)
    if (encoded instanceof Uint8Array) return { isJson: false, state: encoded }
    // Synchronous without a schema.
    return { isJson: true, state: utf8(this.#writer.encode(encoded) as string) }
  }

  /** Rejects if the snapshot cannot be decoded, or does not match the schema. */
  async decode({ isJson, state, position }: FoldSnapshot): Promise<State> {
    const { decode } = this.#options
    const encoded = isJson ? await this.#parsed(state, position) : state
    return decode === undefined ? (encoded as State) : decode(encoded as never)
  }

  async #parsed(body: Uint8Array, seqNum: number): Promise<unknown> {
    const [record] = await this.#reader.decode([{ seqNum, timestamp: 0, headers: [], body }])
    return record!.value
  }
}
