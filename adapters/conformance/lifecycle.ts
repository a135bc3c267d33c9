import type { CatalogChange, Head, JsonValue, StorageSession } from '../../src/storage/contract.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, fails, ok } from './assertions.ts'
import { checkRead, NOW, range, WHOLE_LOG } from './blocks.ts'
import { put } from './catalog.ts'
import type { Cases, Harness } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'
import { afterProducer, writeStates } from './write-state.ts'

export const lifecycleCases: Cases = {
  async 'the storage has the announced manifest'(harness) {
    equal(harness.storage.manifest, harness.options.manifest, 'manifest')
  },
  async 'closing twice does nothing the second time'(harness) {
    const session = await harness.open()
    await Promise.all([session.close(), session.close()])
    await session.close()
  },
  async 'a closed session rejects every call'(harness) {
    const log = await harness.log()
    const closing = log.session.close()
    await rejectsAll(log)
    await closing
    await rejectsAll(log)
  },
  async 'close waits for calls in flight'(harness) {
    const log = await harness.log()
    let settled = 0
    const count = (): void => void settled++
    for (let i = 0; i < 20; i++) log.append().then(count, count)
    for (let i = 0; i < 5; i++) log.session.commit([put(`key-${i}`, i)]).then(count, count)
    log.records().then(count, count)
    await log.session.close()
    // Lets the reactions to promises run that have settled by now.
    await new Promise((resolve) => setTimeout(resolve, 0))
    equal(settled, 26, 'number of calls that have settled')
  },
  async 'close leaves no timer armed'(harness) {
    const log = await harness.log()
    await log.append()
    await reclaimAll(log.session, { now: NOW, trimmedBefore: NOW, blocksMax: 10 })
    await log.session.close()
    equal(harness.armedTimers, 0, 'number of armed timers')
  },
}

export const exclusiveCases: Cases = {
  async 'a storage that is not shared opens once at a time'(harness) {
    const log = await harness.log()
    await fails(harness.open(), 'blocked', 'second opening')
    await log.append()
    await log.session.close()
    const next = await harness.open()
    await next.commit([put('a', 1)])
    equal((await next.get('streams', 'a'))?.value, 1, 'value')
  },
}

const EVERYTHING = { prefix: '', after: '', limit: 100 }

/** The data after closing, or a crash, and opening again. */
export const reopenCases: Cases = {
  async 'data survives closing and opening again'(harness) {
    const log = await harness.log()
    const { session } = log
    await session.commit([put('a', { kept: true }), put('\ue000', 1), put('\u{10000}', 2), put('gone', 0)])
    await session.commit([{ kind: 'delete', collection: 'streams', key: 'gone' }])
    const documents = await session.list('streams', EVERYTHING)
    const appends = Array.from({ length: 50 }, (_, i) =>
      log.append({ count: 1 + (i % 5), fencingToken: `token-${i}`, trimPoint: i, trimmedAt: NOW + i }),
    )
    await Promise.all(appends)
    const empty = await LogWriter.create(session, 'empty')
    await session.commit([{ kind: 'set-epoch', logId: 'empty', epoch: 5 }])
    empty.head = { ...empty.head, epoch: 5 }
    await (await LogWriter.create(session, 'deleted')).append()
    await session.commit([{ kind: 'delete-log', logId: 'deleted' }])
    for (let round = 0; round < 2; round++) {
      const reopened = await harness.reopen()
      equal(await reopened.list('streams', EVERYTHING), documents, 'documents')
      await log.check(reopened)
      await empty.check(reopened)
      equal(await reopened.head('deleted'), undefined, 'head of a deleted log')
      equal(await reopened.read('deleted', WHOLE_LOG), [], 'blocks of a deleted log')
    }
  },
  async 'a reopened storage continues with its versions and heads'(harness) {
    let log = await harness.log()
    const versions = new Set<number>()
    for (let round = 0; round < 4; round++) {
      const { session } = log
      await session.commit([put('a', 'always the same')])
      const { version } = (await session.get('streams', 'a'))!
      ok(!versions.has(version), `version ${version} returned`)
      versions.add(version)
      await session.commit([{ kind: 'delete', collection: 'streams', key: 'a', expect: version }])
      await log.append({ count: 3 })
      await log.append({ count: 3, expiresAt: NOW + round })
      await conflicts(new LogWriter(session, 'a').append(), 'append at 0')
      log = new LogWriter(await harness.reopen(), 'a', log.head, log.written)
      await log.check()
    }
    await reclaimAll(log.session, { now: NOW + 10, trimmedBefore: 0, blocksMax: 1 })
    for (const expected of log.written) expected.mayBeFreed = expected.block.expiresAt !== null
    await log.check()
  },
  async 'acknowledged data survives a close with calls in flight'(harness) {
    const log = await harness.log()
    let acknowledged = 0
    const count = (): void => void acknowledged++
    for (let i = 0; i < 30; i++) log.append().then(count, () => {})
    const reopened = await harness.reopen()
    const tail = (await reopened.head('a'))?.tail.seqNum ?? 0
    ok(tail >= acknowledged, `the log ends at ${tail}, but ${acknowledged} appends were acknowledged`)
    const kept = log.written.filter(({ block }) => block.firstSeqNum < tail)
    checkRead(kept, WHOLE_LOG, await reopened.read('a', WHOLE_LOG))
  },
  async 'the write state survives closing and opening again, appends and reclaiming'(harness) {
    let log = await harness.log()
    for (let round = 0; round < 3; round++) {
      for (const writeState of writeStates(log)) await log.append({ writeState, expiresAt: NOW + round })
      await log.append({ expiresAt: NOW + round })
      const session = await harness.reopen()
      equal(await session.head('a'), log.head, 'head')
      await reclaimAll(session, { now: NOW + round, trimmedBefore: 0, blocksMax: 100 })
      log = new LogWriter(session, 'a', (await session.head('a'))!)
    }
    await log.append({ writeState: { ...log.head.writeState, closed: true } })
    equal(await (await harness.reopen()).head('a'), log.head, 'head of a closed log')
  },
  async 'the write state survives a crash with calls in flight'(harness) {
    const log = await harness.log()
    const heads: Head[] = []
    const appends: Promise<unknown>[] = []
    for (let i = 0; i < 30; i++) {
      const changed = i % 3 === 2 ? { ...log.head.writeState, streamSeq: `seq ${i}` } : undefined
      appends.push(log.append({ writeState: changed ?? afterProducer(log, `p${i % 4}`, i) }))
      heads.push(log.head)
    }
    await appends[9]
    const recovered = await harness.crash()
    const head = await recovered.head('a')
    const last = heads.findIndex(({ appendId }) => appendId === head?.appendId)
    ok(last >= 9, `the log ends with append ${last}, but 9 was acknowledged`)
    equal(head, heads[last], 'head')
    await Promise.allSettled(appends)
    let current = new LogWriter(recovered, 'a', (await recovered.head('a'))!)
    await current.append({ writeState: { ...afterProducer(current, 'p0', 99), closed: true } })
    const again = await harness.crash()
    equal(await again.head('a'), current.head, 'head of a closed log')
    current = new LogWriter(again, 'a', current.head)
    await current.append()
    equal(await again.head('a'), current.head, 'head after another append')
  },
  async 'extended blocks stay'(harness) {
    const log = await harness.log()
    for (let i = 0; i < 5; i++) await log.append({ count: 2, expiresAt: NOW + 10 + i })
    await log.extend([{ below: 6, after: NOW, until: NOW + 100 }])
    for (const [now, left] of [
      [NOW + 50, range(0, 6)],
      [NOW + 99, range(0, 6)],
      [NOW + 100, []],
    ] as const) {
      const session = await harness.reopen()
      equal(await session.head('a'), log.head, 'head')
      await reclaimAll(session, { now, trimmedBefore: 0, blocksMax: 3 })
      // Those above may wait.
      equal((await log.records(session)).slice(0, 6), left, `records at ${now}`)
    }
  },
  async 'a log that was written first is published with its documents, or not at all'(harness) {
    const source = await harness.log('source')
    await source.session.commit([put('source', { logId: 'source' })])
    await source.append({ count: 3 })
    await source.append({ count: 4, trimPoint: 2, writeState: { closed: true } })
    const start = { tail: { seqNum: 2, timestamp: NOW + 2 }, fencingToken: '' }
    await source.session.commit([
      { kind: 'create-log', logId: 'fork', epoch: 1, createdAt: NOW, start },
      deadline('creation', 1),
    ])
    const fork = new LogWriter(source.session, 'fork', emptyHead(1, NOW, start))
    await fork.append({ count: 2 })
    await fork.append({ count: 1 })

    let session = await harness.crash()
    await fork.check(session)
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
    await fork.check(session)

    await session.commit(publish(version))
    fork.head = { ...fork.head, epoch: 2 }
    for (let round = 0; round < 2; round++) {
      await fork.check(session)
      equal((await session.get('streams', 'source'))?.value, { logId: 'source', forks: 1 }, 'source')
      equal(await session.get('deadlines', 'creation'), undefined, 'deadline')
      session = await crashOrReopen(harness, round)
    }

    await session.commit([
      put('source', { logId: 'source', forks: 1, deletedAt: NOW }),
      { kind: 'delete-log', logId: 'source', expectSeqNum: 7 },
    ])
    await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 10 })
    session = await harness.reopen()
    equal(await session.head('source'), undefined, 'head of the source')
    await fork.check(session)
  },
  async 'metadata, expiry, reads and deadlines survive closing and a crash'(harness) {
    let session = await harness.open()
    const names = Array.from({ length: 16 }, (_, i) => `name \u{1f600}${i}`)
    const metadata = Object.fromEntries(
      names.map((name, i) => [name, i === 0 ? '' : 'ü\u0000\ue000"\\'.repeat(8)]),
    )
    const stream = (expiry: JsonValue, readAt?: number): JsonValue => ({
      metadata,
      expiry,
      ...(readAt !== undefined && { readAt }),
    })
    const expiringAt = stream({ at: Number.MAX_SAFE_INTEGER })
    await session.commit([
      put('at', expiringAt),
      put('idle', stream({ idleSeconds: 0.001 })),
      deadline(`at\u0000${NOW + 20}`, 'at'),
      deadline(`at\u0000${NOW + 3}`, 'idle'),
      deadline(`at\u0000${NOW + 100}\u0000expiry`, 'both'),
    ])
    for (let round = 0; round < 4; round++) {
      const { version } = (await session.get('streams', 'idle'))!
      const read = stream({ idleSeconds: 0.001 }, NOW + round)
      await session.commit([put('idle', read, version)])
      await conflicts(session.commit([put('idle', 0, version)]), 'commit with an earlier version')
      session = await crashOrReopen(harness, round)
      equal((await session.get('streams', 'at'))?.value, expiringAt, 'expiry at a time')
      equal((await session.get('streams', 'idle'))?.value, read, 'expiry after idle time')
      const due = await session.list('deadlines', { prefix: 'at\u0000', after: '', limit: 2 })
      equal(valuesOf(due), ['idle', 'at'], 'first deadlines')
    }
    await session.commit([{ kind: 'delete', collection: 'deadlines', key: `at\u0000${NOW + 20}` }])
    session = await harness.crash()
    equal(valuesOf(await session.list('deadlines', EVERYTHING)), ['idle', 'both'], 'deadlines that are left')
  },
}

/** Crashes in even rounds and closes the sessions in odd ones, then opens a new session. */
function crashOrReopen(harness: Harness, round: number): Promise<StorageSession> {
  return round % 2 === 0 ? harness.crash() : harness.reopen()
}

function deadline(key: string, value: JsonValue): CatalogChange {
  return { kind: 'put', collection: 'deadlines', key, value }
}

function valuesOf(documents: readonly { readonly value: JsonValue }[]): JsonValue[] {
  return documents.map(({ value }) => value)
}

async function rejectsAll(log: LogWriter): Promise<void> {
  const { session } = log
  const calls: Record<string, () => Promise<unknown>> = {
    get: () => session.get('streams', 'a'),
    list: () => session.list('streams', EVERYTHING),
    commit: () => session.commit([put('a', 1)]),
    'empty commit': () => session.commit([]),
    head: () => session.head('a'),
    append: () => session.append(log.request()),
    read: () => session.read('a', WHOLE_LOG),
    reclaim: () => session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 1 }),
    measure: () => session.measure(['a']),
  }
  for (const [name, call] of Object.entries(calls)) {
    const failure = await fails(call(), 'closed', name)
    ok(failure.nothingWritten, `${name}: a closed session writes nothing`)
  }
}
