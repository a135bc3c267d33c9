import type { CatalogChange, JsonValue, StorageSession } from '../../src/storage/contract.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { put } from './catalog.ts'
import { type ConformanceCase, conflicts, equal, type Harness } from './harness.ts'
import { LogWriter, NOW, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'
import { reclaimAll } from './reclaim.ts'

/** The cases of streams as engines store them, in documents and logs: forks, expiry and metadata. */
export const streamCases: readonly ConformanceCase[] = [
  {
    title: 'a log that was written first is published with its documents, or not at all',
    needs: ['reopen'],
    async run(harness) {
      let session = await harness.open()
      const source = await LogWriter.create(session, 'source')
      await session.commit([put('source', { logId: 'source' })])
      await source.append({ count: 3 })
      await source.append({ count: 4, trimPoint: 2, writeState: { closed: true } })

      const start = { tail: { seqNum: 2, timestamp: NOW + 2 }, fencingToken: '' }
      await session.commit([
        { kind: 'create-log', logId: 'fork', epoch: 1, createdAt: NOW, start },
        deadline('creation', 1),
      ])
      const fork = new LogWriter(session, 'fork', emptyHead(1, NOW, start))
      await fork.append({ count: 2 })
      await fork.append({ count: 1 })

      session = await crashOrReopen(harness, 0)
      equal(await session.head('fork'), fork.head, 'head of the log before it is published')
      const { version } = (await session.get('streams', 'source'))!
      const publish = (expect: number): CatalogChange[] => [
        put('fork', { logId: 'fork', forkOf: { stream: 'source', logId: 'source' } }, null),
        { kind: 'delete', collection: 'deadlines', key: 'creation' },
        { kind: 'set-epoch', logId: 'fork', epoch: 2 },
        put('source', { logId: 'source', forks: 1 }, expect),
      ]
      await conflicts(session.commit(publish(version + 1)), 'commit with another version of the source')
      equal(await session.get('streams', 'fork'), undefined, 'document after the conflict')
      equal((await session.get('deadlines', 'creation'))?.value, 1, 'deadline after the conflict')
      equal(await session.head('fork'), fork.head, 'head after the conflict')

      await session.commit(publish(version))
      const published = { ...fork.head, epoch: 2 }
      for (let round = 0; round < 2; round++) {
        equal(await session.head('fork'), published, 'head of the published log')
        equal((await session.get('streams', 'source'))?.value, { logId: 'source', forks: 1 }, 'source')
        equal(await session.get('deadlines', 'creation'), undefined, 'deadline')
        checkRead(fork.written, WHOLE_LOG, await session.read('fork', WHOLE_LOG))
        session = await crashOrReopen(harness, round)
      }

      await session.commit([
        put('source', { logId: 'source', forks: 1, deletedAt: NOW }),
        { kind: 'delete-log', logId: 'source', expectSeqNum: 7 },
      ])
      await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 10 })
      session = await crashOrReopen(harness, 1)
      equal(await session.head('source'), undefined, 'head of the source')
      equal(await session.head('fork'), published, 'head after the source was deleted')
      checkRead(fork.written, WHOLE_LOG, await session.read('fork', WHOLE_LOG))
    },
  },
  {
    title: 'metadata, expiry, reads and deadlines survive closing and a crash',
    needs: ['reopen'],
    async run(harness) {
      let session = await harness.open()
      const metadata = Object.fromEntries(
        Array.from({ length: 16 }, (_, i) => [
          `name \u{1f600}${i}`,
          i === 0 ? '' : 'ü\u0000\ue000"\\'.repeat(8),
        ]),
      )
      const stream = (expiry: JsonValue, readAt?: number): JsonValue => ({
        metadata,
        expiry,
        ...(readAt !== undefined && { readAt }),
      })
      await session.commit([
        put('at', stream({ at: Number.MAX_SAFE_INTEGER })),
        put('idle', stream({ idleSeconds: 0.001 })),
        deadline(`at\u0000${NOW + 20}`, 'at'),
        deadline(`at\u0000${NOW + 3}`, 'idle'),
        deadline(`at\u0000${NOW + 100}\u0000expiry`, 'both'),
      ])
      for (let round = 0; round < 4; round++) {
        const before = (await session.get('streams', 'idle'))!
        await session.commit([put('idle', stream({ idleSeconds: 0.001 }, NOW + round), before.version)])
        await conflicts(
          session.commit([put('idle', stream({ idleSeconds: 9 }), before.version)]),
          'commit with an earlier version',
        )
        session = await crashOrReopen(harness, round)
        equal(
          (await session.get('streams', 'at'))?.value,
          stream({ at: Number.MAX_SAFE_INTEGER }),
          'expiry at a time',
        )
        equal(
          (await session.get('streams', 'idle'))?.value,
          stream({ idleSeconds: 0.001 }, NOW + round),
          'expiry after idle time',
        )
        const due = await session.list('deadlines', { prefix: 'at\u0000', after: '', limit: 2 })
        equal(
          due.map(({ value }) => value),
          ['idle', 'at'],
          'first deadlines',
        )
      }
      await session.commit([{ kind: 'delete', collection: 'deadlines', key: `at\u0000${NOW + 20}` }])
      session = await crashOrReopen(harness, 0)
      const left = await session.list('deadlines', { prefix: '', after: '', limit: 10 })
      equal(
        left.map(({ value }) => value),
        ['idle', 'both'],
        'deadlines that are left',
      )
    },
  },
]

/** Crashes in even rounds and closes the sessions in odd ones, then opens a new session. */
function crashOrReopen(harness: Harness, round: number): Promise<StorageSession> {
  return round % 2 === 0 ? harness.crash() : harness.reopen()
}

function deadline(key: string, value: JsonValue): CatalogChange {
  return { kind: 'put', collection: 'deadlines', key, value }
}
