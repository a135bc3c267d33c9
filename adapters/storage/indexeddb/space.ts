/** What the browser tells of the space for this origin: this database, other ones, caches, files. Undefined where it does not tell. */
export interface StorageUsage {
  /** An estimate; what was freed counts until the browser has tidied up. */
  readonly usedBytes: number | undefined
  /** Chromium keeps the true one to itself: there it is what is used and 10 GiB, or what the disk can hold if that is less. */
  readonly quotaBytes: number | undefined
  /** Whether the browser keeps the data when the device runs out of space, and asks the user before it deletes them. */
  readonly persisted: boolean | undefined
}

/** The usage when space is low. */
export interface LowSpace extends StorageUsage {
  /** An append was refused: whatever the quota is said to be, more than is used is not to be had. */
  readonly isFull: boolean
  /** What was appended by this storage object since it was made. */
  readonly writtenBytes: number
}

export async function measureUsage(): Promise<StorageUsage> {
  const manager = storageManager()
  const [estimate, persisted] = await Promise.all([
    attempt(() => manager?.estimate?.()),
    attempt(() => manager?.persisted?.()),
  ])
  return { usedBytes: estimate?.usage, quotaBytes: estimate?.quota, persisted }
}

/** Asks the browser, which may ask the user, not to delete the data. Resolves to whether it promises; false where it cannot, as in workers. */
export async function persist(): Promise<boolean> {
  return (await attempt(() => storageManager()?.persist?.())) ?? false
}

/** The share of the quota that is used; undefined where the browser does not tell. */
export function usedShare({ usedBytes, quotaBytes }: StorageUsage): number | undefined {
  return usedBytes === undefined || !quotaBytes ? undefined : usedBytes / quotaBytes
}

function storageManager(): Partial<StorageManager> | undefined {
  return globalThis.navigator?.storage
}

/** Some pages may not ask. */
async function attempt<Answer>(ask: () => Promise<Answer> | undefined): Promise<Answer | undefined> {
  try {
    return await ask()
  } catch {
    return undefined
  }
}
