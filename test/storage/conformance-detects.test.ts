// @module-tag slow

import { describe, expect, test } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import type { CatalogChange, Storage } from '../../src/storage/contract.ts'
import { StorageConflict } from '../../src/storage/errors.ts'
import { identityOf } from '../../src/storage/heads.ts'
import { type Change, wrapped } from './wrapped-storage.ts'

/** A storage for each main promise of the contract, which it breaks, and the topic whose tests notice it. */
const BROKEN: readonly (readonly [breaks: string, topic: string, make: () => Storage])[] = [
  [
    'makes the changes of a commit one by one',
    'catalog',
    changed((session) => ({
      async commit(changes) {
        for (const change of changes) await session.commit([change])
      },
    })),
  ],
  [
    'ignores the expected versions of documents',
    'catalog',
    changed((session) => ({ commit: (changes) => session.commit(changes.map(unconditional)) })),
  ],
  [
    'looks at the expected versions of documents before a commit, not in it',
    'catalog',
    changed((session) => ({
      async commit(changes) {
        for (const change of changes) {
          if (!('collection' in change) || change.expect === undefined) continue
          const version = (await session.get(change.collection, change.key))?.version ?? null
          if (version !== change.expect) throw new StorageConflict('another version')
        }
        await session.commit(changes.map(unconditional))
      },
    })),
  ],
  [
    'lists keys in the order of UTF-16',
    'catalog',
    changed((session) => ({
      async list(collection, range) {
        const listed = await session.list(collection, range)
        return listed.sort((a, b) => (a.key < b.key ? -1 : 1))
      },
    })),
  ],
  [
    'ignores the expected tail of an append',
    'logs',
    changed((session) => ({
      async append(request) {
        const head = await session.head(request.logId)
        const expected = head === undefined ? request.expected : identityOf(head)
        await session.append({ ...request, expected: { ...expected, epoch: request.expected.epoch } })
      },
    })),
  ],
  [
    'ignores the expected epoch of an append',
    'logs',
    changed((session) => ({
      async append(request) {
        const epoch = (await session.head(request.logId))?.epoch ?? 0
        await session.append({ ...request, expected: { ...request.expected, epoch } })
      },
    })),
  ],
  [
    'delays every third append, so that later ones overtake it',
    'logs',
    changed((session) => {
      let calls = 0
      return {
        async append(request) {
          if (calls++ % 3 === 1) await Promise.resolve()
          await session.append(request)
        },
      }
    }),
  ],
  [
    'forgets the producers of a stream',
    'logs',
    changed((session) => ({
      append: ({ head: { writeState: _, ...head }, ...request }) => session.append({ ...request, head }),
    })),
  ],
  [
    'omits a block from a read',
    'read',
    changed((session) => ({
      read: async (logId, range) => (await session.read(logId, range)).filter((_, index) => index !== 5),
    })),
  ],
  [
    'begins a read behind the record that it asks for',
    'read',
    changed((session) => ({
      async read(logId, range) {
        const blocks = await session.read(logId, range)
        const { from } = range
        return 'seqNum' in from ? blocks.filter(({ firstSeqNum }) => firstSeqNum >= from.seqNum) : blocks
      },
    })),
  ],
  [
    'frees records before they expire',
    'reclaim',
    changed((session) => ({ reclaim: (limits) => session.reclaim({ ...limits, now: limits.now + 1 }) })),
  ],
  ['frees nothing', 'reclaim', changed(() => ({ reclaim: async () => ({ more: false, logIds: [] }) }))],
  [
    'forgets the extensions of a retention',
    'reclaim',
    changed((session) => ({
      append: ({ head: { extensions: _, ...head }, ...request }) => session.append({ ...request, head }),
    })),
  ],
  ['gives each session its own data', 'shared', forgetful],
  [
    'loses a notification',
    'shared',
    () => {
      const inner = memory()
      let calls = 0
      const lossy = (onLogChanged: (logId: string) => void) => (logId: string) => {
        if (calls++ !== 3) onLogChanged(logId)
      }
      return {
        manifest: inner.manifest,
        open: (context) => inner.open({ ...context, onLogChanged: lossy(context.onLogChanged) }),
      }
    },
  ],
  ['never elects a session', 'elections', changed(() => ({ electForBackgroundWork: () => () => {} }))],
  ['accepts calls after its end', 'lifecycle', changed(() => ({ close: async () => {} }))],
  ['loses its data when it is closed', 'reopened', forgetful],
  [
    'has another manifest',
    'lifecycle',
    () => ({ ...memory(), manifest: { ...memory().manifest, name: 'x' } }),
  ],
]

/** Puts or deletes a document whatever its version is. */
function unconditional(change: CatalogChange): CatalogChange {
  if (change.kind !== 'put' && change.kind !== 'delete') return change
  const { expect: _, ...any } = change
  return any
}

/** Each opening begins with nothing. */
function forgetful(): Storage {
  return { manifest: memory().manifest, open: (context) => memory().open(context) }
}

function changed(change: Change): () => Storage {
  return () => wrapped(change)
}

describe('the conformance suite fails a storage that', () => {
  test.each(BROKEN)('%s', async (_, topic, make) => {
    const suite = conformanceSuite({
      manifest: memory().manifest,
      make: async () => ({ storage: make(), dispose: async () => {} }),
      clock: virtualClock(),
      keepsDataWhenClosed: true,
      notificationMsMax: 100,
      seeds: [1],
      randomOperations: 50,
    })
    const tests = suite.filter(({ title, skip }) => skip === undefined && title.startsWith(`${topic}: `))
    expect(tests.length).toBeGreaterThan(1)
    for (const { run } of tests) {
      const isNoticed = await run().then(
        () => false,
        () => true,
      )
      if (isNoticed) return
    }
    expect.fail(`no test of ${topic} fails`)
  })
})
