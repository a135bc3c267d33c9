import type { StorageSession } from '../../src/storage/contract.ts'
import { put } from './catalog.ts'
import { type ConformanceCase, conflicts, equal, fails, ok } from './harness.ts'
import { LogWriter, NOW, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'
import { reclaimAll } from './reclaim.ts'

export const lifecycleCases: readonly ConformanceCase[] = [
  {
    title: 'the storage has the announced manifest',
    async run(harness) {
      equal(harness.storage.manifest, harness.options.manifest, 'manifest')
    },
  },
  {
    title: 'a storage that is not shared opens once at a time',
    needs: ['exclusive'],
    async run(harness) {
      const holder = await harness.open()
      await fails(harness.open(), 'blocked', 'second opening')
      const writer = await LogWriter.create(holder, 'a')
      await writer.append()
      await holder.close()
      const next = await harness.open()
      await next.commit([put('a', 1)])
      equal((await next.get('streams', 'a'))?.value, 1, 'value')
    },
  },
  {
    title: 'closing twice does nothing the second time',
    async run(harness) {
      const session = await harness.open()
      await Promise.all([session.close(), session.close()])
      await session.close()
    },
  },
  {
    title: 'a closed session rejects every call',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const closing = session.close()
      await refusesAll(session, writer)
      await closing
      await refusesAll(session, writer)
    },
  },
  {
    title: 'close waits for calls in flight',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      let settled = 0
      const count = (): void => void settled++
      for (let i = 0; i < 20; i++) writer.append().then(count, count)
      for (let i = 0; i < 5; i++) session.commit([put(`key-${i}`, i)]).then(count, count)
      session.read('a', WHOLE_LOG).then(count, count)
      await session.close()
      // Lets the reactions to promises run that have settled by now.
      await new Promise((resolve) => setTimeout(resolve, 0))
      equal(settled, 26, 'number of calls that have settled')
    },
  },
  {
    title: 'close leaves no timer armed',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 10 })
      await session.close()
      equal(harness.armedTimers, 0, 'number of armed timers')
    },
  },
  {
    title: 'data survives closing and opening again',
    needs: ['reopen'],
    async run(harness) {
      const session = await harness.open()
      await session.commit([put('a', { kept: true }), put('\ue000', 1), put('\u{10000}', 2), put('gone', 0)])
      await session.commit([{ kind: 'delete', collection: 'streams', key: 'gone' }])
      const everything = { prefix: '', after: '', limit: 100 }
      const documents = await session.list('streams', everything)
      const writer = await LogWriter.create(session, 'a')
      const appends = Array.from({ length: 50 }, (_, i) =>
        writer.append({ count: 1 + (i % 5), fencingToken: `token-${i}`, trimPoint: i, trimmedAt: NOW + i }),
      )
      await Promise.all(appends)
      await LogWriter.create(session, 'empty')
      await session.commit([{ kind: 'set-epoch', logId: 'empty', epoch: 5 }])
      const empty = await session.head('empty')
      await (await LogWriter.create(session, 'deleted')).append()
      await session.commit([{ kind: 'delete-log', logId: 'deleted' }])

      for (let round = 0; round < 2; round++) {
        const reopened = await harness.reopen()
        equal(await reopened.list('streams', everything), documents, 'documents')
        equal(await reopened.head('a'), writer.head, 'head')
        checkRead(writer.written, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
        equal(await reopened.head('empty'), empty, 'head of an empty log')
        equal(await reopened.head('deleted'), undefined, 'head of a deleted log')
        equal(await reopened.read('deleted', WHOLE_LOG), [], 'blocks of a deleted log')
      }
    },
  },
  {
    title: 'a reopened storage continues with its versions and heads',
    needs: ['reopen'],
    async run(harness) {
      let session = await harness.open()
      let writer = await LogWriter.create(session, 'a')
      const versions = new Set<number>()
      for (let round = 0; round < 4; round++) {
        await session.commit([put('a', 'always the same')])
        const { version } = (await session.get('streams', 'a'))!
        ok(!versions.has(version), `version ${version} returned`)
        versions.add(version)
        await session.commit([{ kind: 'delete', collection: 'streams', key: 'a', expect: version }])
        await writer.append({ count: 3 })
        await writer.append({ count: 3, expiresAt: NOW + round })
        await conflicts(new LogWriter(session, 'a').append(), 'append at 0')
        session = await harness.reopen()
        equal(await session.head('a'), writer.head, 'head')
        writer = new LogWriter(session, 'a', writer.head, writer.written)
      }
      const { written } = writer
      checkRead(written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
      await reclaimAll(session, { now: NOW + 10, trimmedBefore: 0, blocksMax: 1 })
      for (const expected of written) expected.mayBeFreed = expected.block.expiresAt !== null
      checkRead(written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'acknowledged data survives a close with calls in flight',
    needs: ['reopen'],
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      let acknowledged = 0
      for (let i = 0; i < 30; i++) {
        writer.append().then(
          () => acknowledged++,
          () => {},
        )
      }
      const reopened = await harness.reopen()
      const head = await reopened.head('a')
      const tail = head?.tail.seqNum ?? 0
      ok(tail >= acknowledged, `the log ends at ${tail}, but ${acknowledged} appends were acknowledged`)
      const kept = writer.written.filter(({ block }) => block.firstSeqNum < tail)
      checkRead(kept, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
    },
  },
]

async function refusesAll(session: StorageSession, writer: LogWriter): Promise<void> {
  const calls: Record<string, () => Promise<unknown>> = {
    get: () => session.get('streams', 'a'),
    list: () => session.list('streams', { prefix: '', after: '', limit: 1 }),
    commit: () => session.commit([put('a', 1)]),
    'empty commit': () => session.commit([]),
    head: () => session.head('a'),
    append: () => session.append(writer.request()),
    read: () => session.read('a', WHOLE_LOG),
    reclaim: () => session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 }),
    measure: () => session.measure(['a']),
  }
  for (const [name, call] of Object.entries(calls)) {
    const failure = await fails(call(), 'closed', name)
    ok(failure.nothingWritten, `${name}: a closed session writes nothing`)
  }
}
