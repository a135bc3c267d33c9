import {
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
  INTEGER_MAX,
  LARGE_APPEND_BYTES_MAX,
  MIB,
} from '../../src/model/limits.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { checkRead, NOW, WHOLE_LOG } from './blocks.ts'
import type { Cases } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

export const logCases: Cases = {
  async 'a log that was never created has no head and no blocks, and takes no append'(harness) {
    const session = await harness.open()
    await conflicts(new LogWriter(session, 'a').append(), 'append')
    await conflicts(session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }]), 'set-epoch')
    equal(await session.head('a'), undefined, 'head')
    equal(await session.read('a', WHOLE_LOG), [], 'blocks')
  },
  async 'a new log has the empty head'(harness) {
    const session = await harness.open()
    await session.commit([{ kind: 'create-log', logId: 'a', epoch: 7, createdAt: NOW }])
    await new LogWriter(session, 'a', emptyHead(7, NOW)).check()
  },
  async 'a log can start at any position with a fencing token'(harness) {
    const session = await harness.open()
    const start = { tail: { seqNum: 70_000, timestamp: NOW + 3 }, fencingToken: '\u{1f600}' }
    await session.commit([
      { kind: 'create-log', logId: 'a', epoch: 7, createdAt: NOW, start },
      { kind: 'create-log', logId: 'b', epoch: 1, createdAt: NOW },
    ])
    const head = { ...emptyHead(7, NOW), tail: start.tail, trimPoint: 70_000, fencingToken: '\u{1f600}' }
    const log = new LogWriter(session, 'a', head)
    await log.check()
    await new LogWriter(session, 'b').check()
    equal(await log.measured(), 0, 'metered bytes')
    await log.append({ count: 2, timestamp: NOW + 3 })
    await log.check()
  },
  async 'creating a log that exists conflicts'(harness) {
    const log = await harness.log()
    await log.append()
    await conflicts(LogWriter.create(log.session, 'a'), 'second creation')
    await log.check()
    const attempts = [1, 2, 3].map((epoch) =>
      log.session.commit([{ kind: 'create-log', logId: 'b', epoch, createdAt: NOW }]),
    )
    const won = await winners(attempts, 'creation')
    equal(won.length, 1, 'number of creations made at once that succeed')
    equal((await log.session.head('b'))?.epoch, won[0]! + 1, 'epoch')
  },
  async 'an append adds its block and replaces the head'(harness) {
    const log = await harness.log()
    await log.append({ count: 3 })
    await log.check()
    const fencingToken = '\u0000 \ue000 \u{1f600}'
    await log.append({ count: 2, trimPoint: 1, trimmedAt: NOW + 5, fencingToken, expiresAt: NOW + 9 })
    await log.check()
    await log.append({ fencingToken: '', timestamp: INTEGER_MAX, expiresAt: INTEGER_MAX })
    await log.check()
  },
  async 'the largest blocks are stored completely'(harness) {
    const log = await harness.log()
    await log.append({ bodyBytes: BATCH_METERED_BYTES_MAX - 8 })
    await log.append({ count: BATCH_RECORDS_MAX, bodyBytes: 1000 })
    await log.append({ count: BATCH_RECORDS_MAX, bodyBytes: 0 })
    await log.check()
  },
  async 'an append of several blocks is stored whole, or not at all'(harness) {
    const log = await harness.log()
    await log.append()
    const wrong = new LogWriter(log.session, 'a', { ...log.head, appendId: 'another' })
    await conflicts(wrong.append({ blocks: 3 }), 'append of three blocks')
    await log.check()
    await Promise.all([
      log.append({ blocks: 3, count: 5 }),
      log.append({ blocks: LARGE_APPEND_BYTES_MAX / MIB, bodyBytes: BATCH_METERED_BYTES_MAX - 8 }),
      log.append({ blocks: 2, count: BATCH_RECORDS_MAX, bodyBytes: 0 }),
      log.append(),
    ])
    const recovered = await harness.crash()
    await log.check(recovered)
    const unsplit = { ...WHOLE_LOG, unsplit: true }
    checkRead(log.written, unsplit, await recovered.read('a', unsplit))
  },
  async 'an append that expects another tail or epoch conflicts and writes nothing'(harness) {
    const log = await harness.log()
    await log.append({ count: 5 })
    const { head, session } = log
    const others = [
      ...[0, 4, 6, 500].map((seqNum) => ({ ...head, tail: { seqNum, timestamp: NOW } })),
      ...[0, 2].map((epoch) => ({ ...head, epoch })),
    ]
    for (const other of others) {
      await conflicts(new LogWriter(session, 'a', other).append(), `append after ${JSON.stringify(other)}`)
    }
    await log.check()
    await log.append()
    await log.check()
  },
  async 'set-epoch changes nothing but the epoch'(harness) {
    const log = await harness.log()
    await log.append({ count: 2, trimPoint: 1, trimmedAt: NOW, fencingToken: 'token' })
    const stale = new LogWriter(log.session, 'a', log.head)
    await log.session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
    log.head = { ...log.head, epoch: 2 }
    await log.check()
    await conflicts(stale.append(), 'append in the epoch before')
    await log.append()
    await log.check()
  },
  async 'a deleted log does not exist'(harness) {
    const log = await harness.log()
    const { session } = log
    const other = await LogWriter.create(session, 'b')
    await log.append({ count: 3 })
    await other.append()
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    equal(await session.head('a'), undefined, 'head')
    equal(await session.read('a', WHOLE_LOG), [], 'blocks')
    await conflicts(log.append(), 'append')
    await conflicts(new LogWriter(session, 'a').append(), 'append at 0')
    await conflicts(session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }]), 'set-epoch')
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    await other.check()
  },
  async 'a log is deleted only at the expected tail'(harness) {
    const log = await harness.log()
    const remove = (expectSeqNum: number) =>
      log.session.commit([{ kind: 'delete-log', logId: 'a', expectSeqNum }])
    await log.append({ count: 3 })
    for (const seqNum of [0, 2, 4]) await conflicts(remove(seqNum), `deletion at ${seqNum}`)
    await log.check()
    await remove(3)
    equal(await log.session.head('a'), undefined, 'head of the deleted log')
    await remove(3)
    await LogWriter.create(log.session, 'b')
    await log.session.commit([{ kind: 'delete-log', logId: 'b', expectSeqNum: 0 }])
    equal(await log.session.head('b'), undefined, 'head of the deleted log without records')
  },
  async 'a log created with the id of a deleted one, if that is allowed, is empty'(harness) {
    const log = await harness.log()
    const { session } = log
    await log.append({ count: 3, expiresAt: NOW, writeState: { closed: true } })
    await session.commit([{ kind: 'delete-log', logId: 'a' }])
    const created = await winners([LogWriter.create(session, 'a')], 'second creation')
    equal(await session.head('a'), created.length === 0 ? undefined : emptyHead(1, NOW), 'head')
    equal(await session.read('a', WHOLE_LOG), [], 'blocks')
    if (created.length === 0) return
    const second = new LogWriter(session, 'a')
    await second.append({ tag: 'second' })
    await reclaimAll(session, { now: NOW, trimmedBefore: NOW, blocksMax: 100 })
    await second.check()
  },
  async 'logs whose ids share a prefix are independent'(harness) {
    const session = await harness.open()
    const ids = ['log', 'log-1', 'log-10', 'log-2', 'lo']
    const logs = await Promise.all(ids.map((logId) => LogWriter.create(session, logId)))
    for (let round = 0; round < 3; round++) {
      for (const log of logs) await log.append({ tag: log.logId, count: round + 1 })
    }
    await session.commit([{ kind: 'delete-log', logId: 'log-1' }])
    for (const log of logs) if (log.logId !== 'log-1') await log.check()
  },

  // Appends that are made before earlier ones have resolved.
  async 'pipelined appends take effect in the order of the calls'(harness) {
    const log = await harness.log()
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => log.append({ count: 1 + (i % 3), tag: `append-${i}` })),
    )
    await log.check()
  },
  async 'a failed append fails the later ones and none before it'(harness) {
    const log = await harness.log()
    const requests = Array.from({ length: 20 }, () => log.request())
    const attempts = requests.map((request, i) =>
      log.session.append(i === 7 ? { ...request, expected: { ...request.expected, epoch: 99 } } : request),
    )
    equal(await winners(attempts, 'append'), [0, 1, 2, 3, 4, 5, 6], 'appends that succeeded')
    const left = new LogWriter(log.session, 'a', requests[6]!.head, log.written.slice(0, 7))
    await left.check()
    await left.append()
    await left.check()
  },
  async 'an append after one that conflicted fails even if the tail is as expected'(harness) {
    const { session, head } = await harness.log()
    const overtaken = new LogWriter(session, 'a', head)
    const requests = [overtaken.request({ count: 1 }), overtaken.request({ count: 1 })]
    const other = new LogWriter(session, 'a', head)
    await other.append({ count: 1 })
    const attempts = requests.map((request) => session.append(request))
    equal(await winners(attempts, 'append'), [], 'appends that succeeded')
    await other.check()
  },
  async 'the first of several concurrent appends with the same expectation succeeds'(harness) {
    const { session, head } = await harness.log()
    const writers = ['x', 'y', 'z'].map((tag) => ({ tag, log: new LogWriter(session, 'a', head) }))
    const attempts = writers.map(({ log, tag }) => session.append(log.request({ tag })))
    equal(await winners(attempts, 'append'), [0], 'appends that succeeded')
    await writers[0]!.log.check()
  },
  async 'appends to different logs are independent'(harness) {
    const session = await harness.open()
    const logs = await Promise.all(['a', 'b', 'c'].map((logId) => LogWriter.create(session, logId)))
    const failing = new LogWriter(session, 'missing')
    const appends: Promise<unknown>[] = []
    for (let round = 0; round < 30; round++) {
      for (const log of logs) appends.push(log.append({ tag: log.logId }))
      appends.push(failing.append())
    }
    const others = appends.map((_, i) => i).filter((i) => i % 4 !== 3)
    equal(await winners(appends, 'append'), others, 'appends that succeeded')
    for (const log of logs) await log.check()
  },
  async 'head and read reflect every resolved append, whatever is in flight'(harness) {
    const log = await harness.log()
    const appends: Promise<unknown>[] = []
    for (let i = 0; i < 20; i++) {
      const done = log.append()
      appends.push(done, log.append(), log.append())
      await done
      const [head, seqNums] = await Promise.all([log.session.head('a'), log.records()])
      const durable = 3 * i + 1
      ok(head !== undefined && head.tail.seqNum >= durable, `the head is older than append ${durable}`)
      ok(seqNums.length >= durable, `the read is older than append ${durable}`)
      seqNums.forEach((seqNum, index) => {
        equal(seqNum, index, 'sequence number')
      })
    }
    await Promise.all(appends)
    await log.check()
  },
}
