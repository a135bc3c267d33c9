import type { SiblingOptions, StreamOptions } from '../../src/api/call-options.ts'
import { RedactedKey } from '../../src/model/encryption-key.ts'
import type { Call } from './call.ts'

/** Identifies a stream among those of a client. */
export function streamId(basin: string, name: string): string {
  return `${basin}/${name}`
}

/** A stream and how it is used through a handle. */
export class RemoteTarget {
  readonly name: string
  /** The name of the basin. */
  readonly basin: string
  readonly autoCreate: boolean
  readonly key: RedactedKey | undefined
  /** The configuration with which it is created, and what the basin gives otherwise. */
  readonly config: StreamOptions['config']

  constructor(
    basin: string,
    name: string,
    { config, encryptionKey }: StreamOptions,
    autoCreate: boolean,
    key = encryptionKey === undefined ? undefined : new RedactedKey(encryptionKey),
  ) {
    this.basin = basin
    this.name = name
    this.autoCreate = autoCreate
    this.config = config
    this.key = key
  }

  /** Another stream of the basin, with the same key. */
  sibling(name: string, options: SiblingOptions): RemoteTarget {
    return new RemoteTarget(this.basin, name, options, options.autoCreate ?? this.autoCreate, this.key)
  }

  get id(): string {
    return streamId(this.basin, this.name)
  }

  get path(): string {
    return `/streams/${encodeURIComponent(this.name)}`
  }

  /** The same stream, which appends and reads create. */
  creating(): RemoteTarget {
    return new RemoteTarget(this.basin, this.name, { config: this.config }, true)
  }

  /** The headers of a request that may create the stream: by the configuration of its basin. */
  get creationHeaders(): NonNullable<Call['vendor']> {
    return { 'stream-config': this.config }
  }

  /** The headers of a request for records. */
  get recordHeaders(): NonNullable<Call['vendor']> {
    return { ...this.creationHeaders, 'encryption-key': this.key }
  }
}
