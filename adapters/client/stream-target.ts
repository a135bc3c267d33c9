import type { SiblingOptions, StreamOptions } from '../../src/api/call-options.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import type { Call } from './call.ts'

/** A stream and how it is used through a handle. */
export class RemoteTarget {
  /** The names of the basin and the stream. */
  readonly names: readonly [basin: string, stream: string]
  readonly autoCreate: boolean
  readonly key: EncryptionKey | undefined
  /** The configuration with which it is created, and what the basin gives otherwise. */
  readonly config: StreamOptions['config']

  constructor(
    names: readonly [basin: string, stream: string],
    { config, encryptionKey }: StreamOptions,
    autoCreate: boolean,
    key = encryptionKey === undefined ? undefined : new EncryptionKey(encryptionKey),
  ) {
    this.names = names
    this.autoCreate = autoCreate
    this.config = config
    this.key = key
  }

  /** Another stream of the basin, with the same key. */
  sibling(name: string, options: SiblingOptions): RemoteTarget {
    return new RemoteTarget([this.basin, name], options, options.autoCreate ?? this.autoCreate, this.key)
  }

  get basin(): string {
    return this.names[0]
  }

  get path(): string {
    return `/streams/${encodeURIComponent(this.names[1])}`
  }

  /** The basin and headers of a request that may create the stream: by the configuration of its basin. */
  get address(): Pick<Call, 'basin' | 'vendor'> {
    return { basin: this.basin, vendor: { 'stream-config': this.config } }
  }

  /** The same for a request that reads or appends records. */
  get recordsAddress(): Pick<Call, 'basin' | 'vendor'> {
    return { basin: this.basin, vendor: { 'stream-config': this.config, 'encryption-key': this.key } }
  }
}
