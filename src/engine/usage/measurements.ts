import { chunkAt } from '../../core/usage/series.ts'
import type { Tier } from '../../core/usage/tiers.ts'
import type { JsonValue, StorageSession } from '../../storage/contract.ts'
import { changeDocuments } from './change-documents.ts'
import { usageKey, withMeasurement } from './usage-documents.ts'

export interface Measurement {
  readonly scope: string
  /** In seconds. */
  readonly time: number
  readonly bytes: number
}

/** Stores what scopes held, in one commit; again is as good as once. Each scope comes once. */
export async function storeMeasurements(
  session: StorageSession,
  measurements: readonly Measurement[],
  tier: Tier,
): Promise<void> {
  const byKey = new Map(
    measurements.map((one) => [usageKey(chunkAt(one.time, tier), one.scope), one] as const),
  )
  await changeDocuments(session, 'usage', [...byKey.keys()], (values) => {
    const changed = new Map<string, JsonValue>()
    for (const [key, { time, bytes }] of byKey) {
      changed.set(key, withMeasurement(values.get(key), chunkAt(time, tier), time, bytes))
    }
    return changed
  })
}
