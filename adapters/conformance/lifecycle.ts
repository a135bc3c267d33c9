import { INTEGER_MAX } from '../../src/model/limits.ts'
import type { Head, JsonValue } from '../../src/storage/contract.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, fails, ok } from './assertions.ts'
import { NOW, WHOLE_LOG } from './blocks.ts'
import { EVERYTHING, put, remove, versionOf } from './catalog.ts'
import type { Cases } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

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
    await reclaimAll(log.session, { now: NOW, trimmedBefore: NOW })
    await log.session.close()
    equal(harness.armedTimers.size, 0, 'number of armed timers')
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

/** The data after closing, or a crash, and opening again. */
export const reopenCases: Cases = {
  async 'everything survives closing and crashes, and the storage continues with it'(harness) {
    let session = await harness.open()
    await session.commit([put('a', 0), put('\ue000', { kept: ['ü\u0000"\\'] }), put('\u{10000}', 2)])
    await session.commit([deadline(`at\u0000${NOW + 20}`, 'late'), deadline(`at\u0000${NOW + 3}`, 'early')])
    const log = await LogWriter.create(session, 'a')
    const appends = Array.from({ length: 50 }, (_, i) =>
      log.append({ count: 1 + (i % 5), fencingToken: `token-${i}`, trimPoint: i, trimmedAt: NOW + i }),
    )
    await Promise.all(appends)
    const extended = await LogWriter.create(session, 'extended')
    // Keeps its blocks longer.
    await extended.reconfigure([{ below: INTEGER_MAX, after: 0, until: NOW + 100 }])
    const start = { tail: { seqNum: 5, timestamp: NOW + 2 }, fencingToken: 'old' }
    await session.commit([{ kind: 'create-log', logId: 'fork', epoch: 1, createdAt: NOW, start }])
    const fork = new LogWriter(session, 'fork', emptyHead(1, NOW, start))
    await (await LogWriter.create(session, 'deleted')).append()
    await session.commit([{ kind: 'delete-log', logId: 'deleted' }])
    const logs = [log, extended, fork]
    const versions = new Set<number>()
    for (let round = 0; round < 4; round++) {
      await session.commit([put('a', 'always the same')])
      const version = await versionOf(session, 'a')
      ok(!versions.has(version), `version ${version} returned`)
      versions.add(version)
      if (round % 2 === 1) await session.commit([remove('a', version)])
      await fork.reconfigure()
      for (const one of logs) {
        for (const writeState of one.writeStates()) await one.append({ writeState, expiresAt: NOW + round })
        await one.append({ count: 3 })
        await conflicts(new LogWriter(session, one.logId).append(), 'append at 0')
      }
      const documents = await session.list('streams', EVERYTHING)
      session = await (round % 2 === 0 ? harness.crash() : harness.reopen())
      equal(await session.list('streams', EVERYTHING), documents, 'documents')
      const due = await session.list('deadlines', { prefix: 'at\u0000', after: '', limit: 2 })
      equal(valuesOf(due), round < 3 ? ['early', 'late'] : ['early'], 'deadlines')
      equal(await session.head('deleted'), undefined, 'head of a deleted log')
      equal(await session.read('deleted', WHOLE_LOG), [], 'blocks of a deleted log')
      for (const one of logs) {
        one.session = session
        await one.check()
      }
      if (round < 2) continue
      await session.commit([{ kind: 'delete', collection: 'deadlines', key: `at\u0000${NOW + 20}` }])
    }
    for (const now of [NOW + 10, NOW + 99, NOW + 100]) {
      await reclaimAll(session, { now, blocksMax: 3 })
      session = await harness.reopen()
      for (const one of logs) {
        const isFreed = one !== extended || now === NOW + 100
        for (const expected of one.written) expected.mayBeFreed = isFreed && expected.block.expiresAt !== null
        await one.check(session)
      }
    }
  },
  async 'acknowledged appends survive a crash or a close with calls in flight, in their order'(harness) {
    let log = await harness.log()
    for (const ending of ['crash', 'reopen', 'crash'] as const) {
      const heads: Head[] = []
      const appends = Array.from({ length: 30 }, (_, i) => {
        const sequenced = i % 3 === 2 ? { ...log.head.writeState, streamSeq: `seq ${i}` } : undefined
        const appended = log.append({ writeState: sequenced ?? log.afterProducer(`p${i % 4}`, i) })
        heads.push(log.head)
        return appended
      })
      let acknowledged = 0
      const count = (): void => void acknowledged++
      for (const append of appends) append.then(count, () => {})
      await appends[9]
      // What is acknowledged after a crash is not part of its data.
      const atCrash = acknowledged
      const session = await harness[ending]()
      await Promise.allSettled(appends)
      const head = await session.head('a')
      const last = heads.findIndex(({ appendId }) => appendId === head?.appendId)
      const least = ending === 'crash' ? atCrash : acknowledged
      ok(last + 1 >= least, `${last + 1} appends are left, but ${least} were acknowledged`)
      equal(head, heads[last], 'head')
      const { seqNum } = head!.tail
      const kept = log.written.filter(({ block }) => block.firstSeqNum < seqNum)
      log = new LogWriter(session, 'a', head, kept)
      await log.check()
    }
  },
}

function deadline(key: string, value: JsonValue) {
  return { kind: 'put', collection: 'deadlines', key, value } as const
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
