import type { Basin } from '../../src/api/basin.ts'
import type { SiblingOptions, StreamOptions } from '../../src/api/stream-options.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { RedactedKey } from '../../src/model/redacted-key.ts'
import type { Call } from './call.ts'

/** A stream and how it is used through a handle. */
export class StreamTarget {
  readonly name: string
  readonly basin: Basin & { assertName(): void }
  readonly autoCreate: boolean
  readonly key: RedactedKey | undefined
  readonly #config: StreamOptions['config']

  constructor(
    basin: Basin & { assertName(): void },
    name: string,
    { config, encryptionKey }: StreamOptions,
    autoCreate: boolean,
    key = encryptionKey === undefined ? undefined : new RedactedKey(encryptionKey),
  ) {
    this.basin = basin
    this.name = name
    this.autoCreate = autoCreate
    this.#config = config
    this.key = key
  }

  /** Another stream of the basin, with the same key. */
  sibling(name: string, options: SiblingOptions): StreamTarget {
    return new StreamTarget(this.basin, name, options, options.autoCreate ?? this.autoCreate, this.key)
  }

  /** Identifies the stream among those of a client. */
  get id(): string {
    return `${this.basin.name}/${this.name}`
  }

  get path(): string {
    return `/streams/${encodeURIComponent(this.name)}`
  }

  /** The same stream, which appends and reads create. */
  creating(): StreamTarget {
    return new StreamTarget(this.basin, this.name, { config: this.#config }, true)
  }

  /** The headers of a request that may create the stream: by the configuration of its basin. */
  get creationHeaders(): NonNullable<Call['vendor']> {
    return { 'stream-config': this.#config }
  }

  /** The headers of a request for records. A key that is malformed is left out, as if none was given. */
  get recordHeaders(): NonNullable<Call['vendor']> {
    return { ...this.creationHeaders, 'encryption-key': this.key?.key(keyHeader).value }
  }

  /** Creates the stream, and its basin, unless they exist. Rejects with `missing` if it is not permitted. */
  async create(missing: HeadwaterError, createBasin: (name: string) => Promise<unknown>): Promise<void> {
    try {
      if (missing.code === 'basin_not_found') await unlessExists(createBasin(this.basin.name))
      await unlessExists(this.basin.createStream(this.name, this.#config))
    } catch (error) {
      if (HeadwaterError.is(error) && error.code === 'permission_denied') throw missing
      throw error
    }
  }
}

async function unlessExists(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
  }
}

/** No cipher has longer keys. */
const KEY_BYTES_MAX = 33

/** The value of a header, out of reach of logs that print an object. */
class KeyHeader {
  readonly #value: string | undefined

  constructor(value: string | undefined) {
    this.#value = value
  }

  get value(): string | undefined {
    return this.#value
  }
}

function keyHeader(given: string | Uint8Array | undefined): KeyHeader {
  const text =
    given instanceof Uint8Array
      ? btoa(String.fromCharCode(...given.subarray(0, KEY_BYTES_MAX + 1)))
      : given?.trim()
  return new KeyHeader(text !== undefined && /^[A-Za-z0-9+/=]{1,44}$/.test(text) ? text : undefined)
}
