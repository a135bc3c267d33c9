/**
 * A storage in a bucket of S3, or of another object store with conditional writes.
 *
 * @packageDocumentation
 */

import { invalid } from '../../../src/model/errors.ts'
import { assertInteger, assertOptions, type MembersOf, unchecked } from '../../../src/model/validation.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { fromEnvironment, type S3Credentials } from './credentials.ts'
import { openBucket } from './open-bucket.ts'

export type { S3Credentials } from './credentials.ts'

/** Options of {@link objectStorage}. */
export interface ObjectStorageOptions {
  /** The name of the bucket, which must exist. */
  readonly bucket: string
  /** A folder of the bucket, such as `apps/chat`: letters, digits and `/-_.`. The whole bucket by default. */
  readonly prefix?: string | undefined
  /** The URL of the provider, such as `http://127.0.0.1:9000`. AWS by default. */
  readonly endpoint?: string | undefined
  /** The region. `us-east-1` by default; `auto` for Cloudflare R2. */
  readonly region?: string | undefined
  /**
   * The keys, or a function that resolves to them, which is called again when they are no longer accepted. By
   * default `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of the environment.
   */
  readonly credentials?: S3Credentials | (() => Promise<S3Credentials>) | undefined
  /** The shortest time from one group of appends to the next, in milliseconds. 0 by default. */
  readonly flushMs?: number | undefined
  /** Opens the bucket although another process has it open, which can write no more. False by default. */
  readonly takeOver?: boolean | undefined
  /** How much of what was read is kept in memory, in bytes. 64 MiB by default. */
  readonly cacheBytes?: number | undefined
  /**
   * A directory that keeps more of what was read. Processes may share it. Records are in it as in the bucket.
   * None by default.
   */
  readonly cacheDirectory?: string | undefined
  /** How much the directory keeps, in bytes; each process may exceed it by a sixteenth. 1 GiB by default. */
  readonly cacheDirectoryBytes?: number | undefined
  /** Sends requests in place of the runtime's `fetch`. */
  readonly fetch?: typeof fetch | undefined
}

const OPTIONS: MembersOf<ObjectStorageOptions> = {
  bucket: 'string',
  prefix: 'string',
  endpoint: 'string',
  region: 'string',
  credentials: unchecked,
  flushMs: assertInteger,
  takeOver: 'boolean',
  cacheBytes: assertInteger,
  cacheDirectory: 'string',
  cacheDirectoryBytes: assertInteger,
  fetch: 'function',
}

/**
 * A storage in a bucket of an object store with conditional writes. For Node, Bun and Deno. An append
 * resolves once it is stored in the bucket; all appends that wait are stored together. One process writes at
 * a time: another one that takes over ends the writing of this one, by the bucket itself. docs/s3.md has the
 * details.
 *
 * Throws `invalid` for invalid options.
 */
export function objectStorage(options: ObjectStorageOptions): Storage {
  assertOptions(options, OPTIONS)
  const { bucket, prefix = '', region = 'us-east-1', endpoint, credentials = fromEnvironment } = options
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) throw invalid('bucket must be a name', 'bucket')
  if (!/^[\w./-]*$/.test(prefix)) throw invalid('prefix must have letters, digits and `/-_.` only', 'prefix')
  const location = {
    bucket,
    prefix: prefix === '' ? '' : `${prefix.replace(/^\/+|\/+$/g, '')}/`,
    endpoint,
    region,
    credentials: typeof credentials === 'function' ? credentials : async () => credentials,
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
  }
  return {
    manifest: { name: 's3', durability: 'power-loss', shared: false, notifications: 'reliable' },
    open: (context) => openBucket(location, options, context),
  }
}
