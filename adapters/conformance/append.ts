import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX, INTEGER_MAX } from '../../src/model/limits.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { type ConformanceCase, conflicts, equal, ok, winners } from './harness.ts'
import { LogWriter, NOW, seqNumsOf, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'

export const appendCases: readonly ConformanceCase[] = [
  {
    title: 'a log that was never created has no head',
    async run(harness) {
      const session = await harness.open()
      equal(await session.head('a'), undefined, 'head')
    },
  },
  {
    title: 'a new log has the empty head',
    async run(harness) {
      const session = await harness.open()
      await session.commit([{ kind: 'create-log', logId: 'a', epoch: 7, createdAt: NOW }])
      equal(await session.head('a'), emptyHead(7, NOW), 'head')
      equal(await session.read('a', WHOLE_LOG), [], 'blocks')
    },
  },
  {
    title: 'a log can start at any position with a fencing token',
    async run(harness) {
      const session = await harness.open()
      const start = { tail: { seqNum: 70_000, timestamp: NOW + 3 }, fencingToken: '\u{1f600}' }
      await session.commit([
        { kind: 'create-log', logId: 'a', epoch: 7, createdAt: NOW, start },
        { kind: 'create-log', logId: 'b', epoch: 1, createdAt: NOW },
      ])
      const head = { ...emptyHead(7, NOW), tail: start.tail, trimPoint: 70_000, fencingToken: '\u{1f600}' }
      equal(await session.head('a'), head, 'head')
      equal(await session.head('b'), emptyHead(1, NOW), 'head of another log')
      equal(await session.read('a', WHOLE_LOG), [], 'blocks')
      equal(await session.measure(['a']), [0], 'metered bytes')
      const writer = new LogWriter(session, 'a', head)
      await writer.append({ count: 2, timestamp: NOW + 3 })
      equal(await session.head('a'), writer.head, 'head after an append')
      equal(seqNumsOf(await session.read('a', WHOLE_LOG)), [70_000, 70_001], 'records')
    },
  },
  {
    title: 'creating an existing log conflicts',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      await conflicts(LogWriter.create(session, 'a'), 'second creation')
      equal(await session.head('a'), writer.head, 'head')
      equal(seqNumsOf(await session.read('a', WHOLE_LOG)), [0], 'records')
      const attempts = [1, 2, 3].map((epoch) =>
        session.commit([{ kind: 'create-log', logId: 'b', epoch, createdAt: NOW }]),
      )
      const won = await winners(attempts, 'creation')
      equal(won.length, 1, 'number of creations made at once that succeed')
      equal((await session.head('b'))?.epoch, won[0]! + 1, 'epoch')
    },
  },
  {
    title: 'an append adds its block and replaces the head',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 3 })
      equal(await session.head('a'), writer.head, 'head after the first append')
      await writer.append({
        count: 2,
        trimPoint: 1,
        trimmedAt: NOW + 5,
        fencingToken: '\u0000 \ue000 \u{1f600}',
        expiresAt: NOW + 9,
      })
      equal(await session.head('a'), writer.head, 'head after the second append')
      await writer.append({ fencingToken: '', timestamp: INTEGER_MAX, expiresAt: INTEGER_MAX })
      equal(await session.head('a'), writer.head, 'head after the third append')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'the largest blocks are stored completely',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ bodyBytes: BATCH_METERED_BYTES_MAX - 8 })
      await writer.append({ count: BATCH_RECORDS_MAX, bodyBytes: 1000 })
      await writer.append({ count: BATCH_RECORDS_MAX, bodyBytes: 0 })
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'an append that expects a different tail conflicts and writes nothing',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 5 })
      const { head } = writer
      for (const seqNum of [0, 4, 6, 500]) {
        const wrong = new LogWriter(session, 'a', { ...head, tail: { seqNum, timestamp: NOW } })
        await conflicts(wrong.append(), `append at ${seqNum}`)
      }
      equal(await session.head('a'), head, 'head')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
      await writer.append()
      equal(await session.head('a'), writer.head, 'head after an append that expects the tail')
    },
  },
  {
    title: 'an append that expects a different epoch conflicts and writes nothing',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      for (const epoch of [0, 2]) {
        await conflicts(
          new LogWriter(session, 'a', { ...writer.head, epoch }).append(),
          `append in epoch ${epoch}`,
        )
      }
      equal(await session.head('a'), writer.head, 'head')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'set-epoch changes nothing but the epoch',
    async run(harness) {
      const session = await harness.open()
      await conflicts(
        session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }]),
        'set-epoch of a missing log',
      )
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 2, trimPoint: 1, trimmedAt: NOW, fencingToken: 'token' })
      const before = writer.head
      await session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
      equal(await session.head('a'), { ...before, epoch: 2 }, 'head')
      const stale = new LogWriter(session, 'a', before)
      await conflicts(stale.append(), 'append in the epoch before')
      writer.head = { ...before, epoch: 2 }
      await writer.append()
      equal(await session.head('a'), writer.head, 'head after an append in the new epoch')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'appending to a missing log conflicts',
    async run(harness) {
      const session = await harness.open()
      await conflicts(new LogWriter(session, 'a').append(), 'append')
      equal(await session.head('a'), undefined, 'head')
      equal(await session.read('a', WHOLE_LOG), [], 'blocks')
    },
  },
  {
    title: 'a deleted log does not exist',
    async run(harness) {
      const session = await harness.open()
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      const writer = await LogWriter.create(session, 'a')
      const other = await LogWriter.create(session, 'b')
      await writer.append({ count: 3 })
      await other.append()
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      equal(await session.head('a'), undefined, 'head')
      equal(await session.read('a', WHOLE_LOG), [], 'blocks')
      await conflicts(writer.append(), 'append')
      await conflicts(new LogWriter(session, 'a').append(), 'append at 0')
      await conflicts(session.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }]), 'set-epoch')
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      equal(await session.head('b'), other.head, 'head of another log')
      checkRead(other.written, WHOLE_LOG, await session.read('b', WHOLE_LOG))
    },
  },
  {
    title: 'a log is deleted only at the expected tail',
    async run(harness) {
      const session = await harness.open()
      const remove = (expectSeqNum: number) =>
        session.commit([{ kind: 'delete-log', logId: 'a', expectSeqNum }])
      await remove(3)
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 3 })
      for (const seqNum of [0, 2, 4]) await conflicts(remove(seqNum), `deletion at ${seqNum}`)
      equal(await session.head('a'), writer.head, 'head')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
      await remove(3)
      equal(await session.head('a'), undefined, 'head of the deleted log')
      await LogWriter.create(session, 'b')
      await session.commit([{ kind: 'delete-log', logId: 'b', expectSeqNum: 0 }])
      equal(await session.head('b'), undefined, 'head of the deleted log without records')
    },
  },
  {
    title: 'a log created with the id of a deleted one, if that is allowed, is empty',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ count: 3, expiresAt: NOW })
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      const created = await winners([LogWriter.create(session, 'a')], 'second creation')
      equal(await session.head('a'), created.length === 0 ? undefined : emptyHead(1, NOW), 'head')
      equal(await session.read('a', WHOLE_LOG), [], 'blocks')
      if (created.length === 0) return
      const second = new LogWriter(session, 'a')
      await second.append({ tag: 'second' })
      while ((await session.reclaim({ now: NOW, trimmedBefore: NOW, blocksMax: 100 })).more) {}
      checkRead(second.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'logs whose ids share a prefix are independent',
    async run(harness) {
      const session = await harness.open()
      const writers: LogWriter[] = []
      for (const logId of ['log', 'log-1', 'log-10', 'log-2', 'lo']) {
        writers.push(await LogWriter.create(session, logId))
      }
      for (let round = 0; round < 3; round++) {
        for (const writer of writers) await writer.append({ tag: writer.logId, count: round + 1 })
      }
      await session.commit([{ kind: 'delete-log', logId: 'log-1' }])
      for (const writer of writers) {
        if (writer.logId === 'log-1') continue
        equal(await session.head(writer.logId), writer.head, `head of ${writer.logId}`)
        checkRead(writer.written, WHOLE_LOG, await session.read(writer.logId, WHOLE_LOG))
      }
    },
  },
  {
    title: 'a document and its log are created and deleted together',
    async run(harness) {
      const session = await harness.open()
      const create = [
        { kind: 'put', collection: 'streams', key: 'a', value: { log: 'a' }, expect: null },
        { kind: 'create-log', logId: 'a', epoch: 1, createdAt: NOW },
      ] as const
      await session.commit(create)
      ok((await session.get('streams', 'a')) !== undefined, 'there is no document')
      equal(await session.head('a'), emptyHead(1, NOW), 'head')
      await session.commit([
        { kind: 'delete', collection: 'streams', key: 'a' },
        { kind: 'delete-log', logId: 'a' },
      ])
      equal(await session.get('streams', 'a'), undefined, 'document')
      equal(await session.head('a'), undefined, 'head')
    },
  },
]
