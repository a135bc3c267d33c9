import type { StorageManifest } from '../contract.ts'
import { appendCases } from './append.ts'
import { catalogCases } from './catalog.ts'
import { catalogListCases } from './catalog-lists.ts'
import { type ConformanceCase, type ConformanceOptions, Harness, type Need } from './harness.ts'
import { lifecycleCases } from './lifecycle.ts'
import { notificationCases } from './notifications.ts'
import { pipelineCases } from './pipeline.ts'
import { randomCases } from './random.ts'
import { readCases } from './read.ts'
import { reclaimCases } from './reclaim.ts'
import { sharedCases } from './shared.ts'
import { turnCases } from './turns.ts'

export type { ConformanceFixture, ConformanceOptions } from './harness.ts'

/** One test, for whatever runs tests. */
export interface ConformanceTest {
  readonly title: string
  /** Why it does not apply to this storage. */
  readonly skip: string | undefined
  /** Rejects when the storage breaks its promise. */
  readonly run: () => Promise<void>
}

/**
 * The tests of the storage contract. They need no test runner and no Node:
 *
 * ```ts
 * for (const { title, skip, run } of conformanceSuite({ manifest, make })) {
 *   if (skip !== undefined) test.skip(`${title} (${skip})`)
 *   else test(title, run)
 * }
 * ```
 */
export function conformanceSuite(options: ConformanceOptions): ConformanceTest[] {
  const topics: Record<string, readonly ConformanceCase[]> = {
    catalog: [...catalogCases, ...catalogListCases],
    logs: [...appendCases, ...pipelineCases],
    read: readCases,
    reclaim: reclaimCases,
    shared: [...sharedCases, ...notificationCases],
    turns: turnCases,
    lifecycle: lifecycleCases,
    random: randomCases(options),
  }
  return Object.entries(topics).flatMap(([topic, cases]) =>
    cases.map((one) => ({
      title: `${topic}: ${one.title}`,
      skip: skipReason(one.needs ?? [], options),
      run: () => runCase(one, options),
    })),
  )
}

async function runCase(one: ConformanceCase, options: ConformanceOptions): Promise<void> {
  const fixture = await options.make()
  const harness = new Harness(options, fixture)
  try {
    await one.run(harness)
  } finally {
    await harness.closeAll()
    await fixture.dispose()
  }
}

function skipReason(needs: readonly Need[], options: ConformanceOptions): string | undefined {
  return needs.map((need) => REASONS[need](options.manifest, options)).find((reason) => reason !== undefined)
}

const REASONS: Record<Need, (manifest: StorageManifest, options: ConformanceOptions) => string | undefined> =
  {
    shared: ({ shared }) => (shared ? undefined : 'the storage is not shared'),
    exclusive: ({ shared }) => (shared ? 'the storage is shared' : undefined),
    'reliable-notifications': ({ notifications }) =>
      notifications === 'reliable' ? undefined : `notifications are '${notifications}'`,
    reopen: ({ durability }, { keepsDataWhenClosed }) =>
      (keepsDataWhenClosed ?? durability !== 'none') ? undefined : 'the storage forgets when it is closed',
  }
