/**
 * The tests that every storage passes, for any test runner.
 *
 * @packageDocumentation
 */

import { invalid } from '../../src/model/errors.ts'
import { assertOptions, hasMethod, listOf, type MembersOf, unchecked } from '../../src/model/validation.ts'
import { catalogCases } from './catalog.ts'
import { type Cases, type ConformanceOptions, Harness } from './harness.ts'
import { exclusiveCases, lifecycleCases, reopenCases } from './lifecycle.ts'
import { logCases } from './logs.ts'
import { randomCases } from './random.ts'
import { readCases } from './read.ts'
import { reclaimCases } from './reclaim.ts'
import { electionCases, notificationCases, sharedCases } from './shared.ts'

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
  return topicsOf(options).flatMap(([topic, cases, skip]) =>
    Object.entries(cases).map(([title, run]) => ({
      title: `${topic}: ${title}`,
      skip,
      run: () => runCase(run, options),
    })),
  )
}

/** Each with the reason to leave its tests out, if there is one. */
function topicsOf(options: ConformanceOptions): [topic: string, cases: Cases, skip?: string | undefined][] {
  const { durability, shared, notifications } = options.manifest
  const isShared = shared ? undefined : 'the storage is not shared'
  const isExclusive = shared ? 'the storage is shared' : undefined
  const notifies = notifications === 'reliable' ? undefined : `notifications are '${notifications}'`
  const keeps = options.keepsDataWhenClosed ?? durability !== 'none'
  return [
    ['catalog', catalogCases],
    ['logs', logCases],
    ['read', readCases],
    ['reclaim', reclaimCases],
    ['shared', sharedCases, isShared],
    ['shared', notificationCases, isShared ?? notifies],
    ['elections', electionCases],
    ['lifecycle', lifecycleCases],
    ['lifecycle', exclusiveCases, isExclusive],
    ['reopened', reopenCases, keeps ? undefined : 'the storage loses its data on close'],
    ['random', randomCases(options)],
  ]
}

async function runCase(run: Cases[string], options: ConformanceOptions): Promise<void> {
  const fixture = await options.make()
  const harness = new Harness(options, fixture)
  try {
    await run(harness)
  } finally {
    await harness.closeAll()
    await fixture.dispose()
  }
}
