import type { StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { LogStorage } from '../log/storage.ts'
import { BucketMedium } from './bucket-medium.ts'
import { DiskCache } from './disk-cache.ts'
import { becomeOwner } from './owner.ts'
import { RangeCache } from './range-cache.ts'
import { S3Bucket, type S3Location } from './s3-bucket.ts'

export interface OpenOptions {
  readonly takeOver?: boolean | undefined
  readonly flushMs?: number | undefined
  readonly cacheBytes?: number | undefined
  readonly cacheDirectory?: string | undefined
  readonly cacheDirectoryBytes?: number | undefined
  /** The size at which journals are rolled, in bytes. */
  readonly rollBytes?: number | undefined
}

/** A group is an object: reading it takes as long as reading so much more of another one. */
const GROUP_BYTES = 65_536

/** Opens the storage in a bucket. Rejects with `blocked` if another process has it open. */
export async function openBucket(
  location: S3Location,
  { takeOver = false, flushMs, rollBytes, ...options }: OpenOptions,
  context: StorageContext,
): Promise<StorageSession> {
  const bucket = new S3Bucket(location)
  const { clock } = context
  let medium: BucketMedium | undefined
  const leave = await becomeOwner(
    bucket,
    clock,
    takeOver,
    async () => medium?.assertWriter(),
    (error) => context.onBackgroundError?.(error),
  )
  try {
    medium = await BucketMedium.open(bucket, await openCache(options))
    const logOptions = {
      durability: 'power-loss',
      groupBytes: GROUP_BYTES,
      flushMs,
      rollBytes,
      clock,
    } as const
    const storage = await LogStorage.open(medium, logOptions, leave)
    return storage.join(context)!
  } catch (error) {
    await leave()
    throw error
  }
}

async function openCache({
  cacheBytes = 64 * 1_048_576,
  cacheDirectory,
  cacheDirectoryBytes = 1_073_741_824,
}: OpenOptions): Promise<RangeCache> {
  if (cacheDirectory === undefined) return new RangeCache(cacheBytes)
  return new RangeCache(cacheBytes, await DiskCache.open(cacheDirectory, cacheDirectoryBytes))
}
