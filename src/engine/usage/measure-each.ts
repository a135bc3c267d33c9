import type { StorageSession } from '../../storage/contract.ts'

export interface Measured {
  /** Metered bytes by log id. */
  readonly sizes: ReadonlyMap<string, number>
  /** Why each of the others could not be measured. */
  readonly failures: ReadonlyMap<string, unknown>
}

/** What logs hold: one that cannot be measured keeps none of the others from it. Never rejects. */
export async function measureEach(session: StorageSession, logIds: readonly string[]): Promise<Measured> {
  try {
    const sizes = await session.measure(logIds)
    return { sizes: new Map(logIds.map((logId, index) => [logId, sizes[index]!])), failures: new Map() }
  } catch {
    const sizes = new Map<string, number>()
    const failures = new Map<string, unknown>()
    const measureOne = async (logId: string) => {
      const [size] = await session.measure([logId])
      sizes.set(logId, size!)
    }
    const all = logIds.map((logId) => measureOne(logId).catch((error) => failures.set(logId, error)))
    await Promise.all(all)
    return { sizes, failures }
  }
}
