import { invalid } from '../../src/model/errors.ts'
import { assertOptions, hasMethod, listOf, type MembersOf, unchecked } from '../../src/model/validation.ts'
import type { StorageManifest } from '../../src/storage/contract.ts'
import { appendCases } from './append.ts'
import { catalogCases } from './catalog.ts'
import { catalogListCases } from './catalog-lists.ts'
import { extensionCases } from './extensions.ts'
import { type ConformanceCase, type ConformanceOptions, Harness, type Need } from './harness.ts'
import { lifecycleCases } from './lifecycle.ts'
import { notificationCases } from './notifications.ts'
import { pipelineCases } from './pipeline.ts'
import { randomCases } from './random.ts'
import { readCases } from './read.ts'
import { reclaimCases } from './reclaim.ts'
import { electionCases, sharedCases } from './shared.ts'
import { streamCases } from './streams.ts'
import { writeStateCases } from './write-state.ts'

export type { ConformanceFixture, ConformanceOptions } from './harness.ts'

/** A test of the suite, for any test runner. */
export interface ConformanceTest {
  /** Topic and expected behaviour. */
  readonly title: string
  /** Why the test does not apply to this storage; undefined if it does. */
  readonly skip: string | undefined
  /** Rejects if the storage breaks the contract. */
  readonly run: () => Promise<void>
}

const CONFORMANCE_OPTIONS: MembersOf<ConformanceOptions> = {
  manifest: unchecked,
  make: 'function',
  clock: hasMethod('now', 'a clock'),
  keepsDataWhenClosed: 'boolean',
  notificationMsMax: 'number',
  seeds: listOf(unchecked),
  randomOperations: 'number',
}

/**
 * Returns the tests of the storage contract. They need neither a test runner nor Node:
 *
 * ```ts
 * for (const { title, skip, run } of conformanceSuite({ manifest, make })) {
 *   if (skip !== undefined) test.skip(`${title} (${skip})`)
 *   else test(title, run)
 * }
 * ```
 *
 * Throws `invalid` for invalid options.
 */
export function conformanceSuite(options: ConformanceOptions): ConformanceTest[] {
  assertOptions(options, CONFORMANCE_OPTIONS)
  if (options.manifest === undefined || options.make === undefined) {
    throw invalid('`manifest` and `make` are required', 'options')
  }
  const topics: Record<string, readonly ConformanceCase[]> = {
    catalog: [...catalogCases, ...catalogListCases],
    logs: [...appendCases, ...pipelineCases, ...writeStateCases],
    read: readCases,
    reclaim: [...reclaimCases, ...extensionCases],
    shared: [...sharedCases, ...notificationCases],
    elections: electionCases,
    streams: streamCases,
    lifecycle: lifecycleCases,
    random: randomCases(options),
  }
  return Object.entries(topics).flatMap(([topic, cases]) =>
    cases.map((conformanceCase) => ({
      title: `${topic}: ${conformanceCase.title}`,
      skip: skipReason(conformanceCase.needs ?? [], options),
      run: () => runCase(conformanceCase, options),
    })),
  )
}

async function runCase(conformanceCase: ConformanceCase, options: ConformanceOptions): Promise<void> {
  const fixture = await options.make()
  const harness = new Harness(options, fixture)
  try {
    await conformanceCase.run(harness)
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
    'new-memory': ({ readsIntoNewMemory }) =>
      readsIntoNewMemory ? undefined : 'the storage may return memory that it keeps',
    reopen: ({ durability }, { keepsDataWhenClosed }) =>
      (keepsDataWhenClosed ?? durability !== 'none') ? undefined : 'the storage loses its data on close',
  }
