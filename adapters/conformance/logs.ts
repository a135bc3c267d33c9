import type { WriteState } from '../../src/core/sequence.ts'
import {
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
  INTEGER_MAX,
  LARGE_APPEND_BYTES_MAX,
  MIB,
  PRODUCERS_MAX,
} from '../../src/model/limits.ts'
import { emptyHead } from '../../src/storage/heads.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { NOW, range, WHOLE_LOG } from './blocks.ts'
import { onLog } from './harness.ts'
import { type AppendSpec, LogWriter, reclaimAll } from './log-writer.ts'

/** Appends that change each member of a head. */
const APPENDS: readonly AppendSpec[] = [
  { count: 3 },
  { count: 2, trimPoint: 1, trimmedAt: NOW + 5, fencingToken: '\u0000 \ue000 \u{1f600}', expiresAt: NOW + 9 },
  { trimPoint: 2, trimmedAt: NOW + 6 },
  { trimPoint: 4, trimmedAt: NOW + 7 },
  { trimPoint: 7, trimmedAt: NOW + 8 },
  { fencingToken: '', expiresAt: INTEGER_MAX },
]

export const logCases = onLog({
  async 'a log that was never created has no head and no blocks, and takes no append'({ session }) {
    await conflicts(new LogWriter(session, 'b').append(), 'append')
    await conflicts(session.commit([{ kind: 'set-epoch', logId: 'b', epoch: 2 }]), 'set-epoch')
    equal(await session.head('b'), undefined, 'head')
    equal(await session.read('b', WHOLE_LOG), [], 'blocks')
  },
  async 'a log can start at any position with a fencing token'({ session }) {
    const start = { tail: { seqNum: 70_000, timestamp: NOW + 3 }, fencingToken: '\u{1f600}' }
    await session.commit([
      { kind: 'create-log', logId: 'b', epoch: 7, createdAt: NOW, start },
      { kind: 'create-log', logId: 'c', epoch: 1, createdAt: NOW },
    ])
    const log = new LogWriter(session, 'b', { ...emptyHead(7, NOW), ...start, trimPoint: 70_000 })
    await log.check()
    await new LogWriter(session, 'c').check()
    await log.append({ count: 2, timestamp: NOW + 3 })
    await log.check()
  },
  async 'creating a log that exists conflicts'(log) {
    await log.append()
    await conflicts(LogWriter.create(log.session, 'a'), 'second creation')
  },
  async 'an append adds its blocks and replaces the head, and a new epoch changes nothing else'(
    log,
    harness,
  ) {
    let [session, other] = [log.session, await harness.other()]
    // The sessions take turns, and each sees what the other has done.
    const step = async (change: () => Promise<unknown>) => {
      await change()
      ;[session, other] = [other, session]
      log.session = session
      await log.check()
    }
    for (const spec of APPENDS) {
      await step(() => log.append(spec))
      const stale = log.copy({})
      await step(() => log.reconfigure())
      await conflicts(stale.append(), 'append in the epoch before')
    }
    for (const writeState of log.writeStates()) {
      await step(() => log.append({ writeState }))
      await step(() => log.append())
    }
    const last = { below: INTEGER_MAX, after: NOW + 5, until: null }
    for (const extensions of [[{ below: 1, after: NOW, until: NOW + 10 }, last], undefined, [last]]) {
      await step(() => log.reconfigure(extensions))
      await step(() => log.append())
    }
    await step(() => log.append({ timestamp: INTEGER_MAX }))
  },
  async 'a head has 1,000 producers, which appends replace and drop'(log) {
    // Of 128 bytes.
    const idOf = (i: number) => String(i).padStart(128, '0')
    let state: WriteState | undefined
    for (let i = 0; i < PRODUCERS_MAX; i++) state = log.afterProducer(idOf(i), 0, state)
    await log.append({ writeState: state })
    for (const id of [idOf(500), 'new', idOf(500), idOf(999), 'newer']) {
      await log.append({ writeState: log.afterProducer(id, 1) })
      await log.check()
    }
  },
  async 'an append of several blocks of any size is stored whole, or not at all'(log, harness) {
    await log.append()
    await conflicts(log.copy({ head: { ...log.head, appendId: 'another' } }).append({ blocks: 3 }), 'append')
    await log.check()
    await Promise.all([
      log.append({ blocks: 3, count: 5 }),
      log.append({ blocks: LARGE_APPEND_BYTES_MAX / MIB, bodyBytes: BATCH_METERED_BYTES_MAX - 8 }),
      log.append({ blocks: 2, count: BATCH_RECORDS_MAX, bodyBytes: 0 }),
      log.append({ count: BATCH_RECORDS_MAX, bodyBytes: 1000 }),
      log.append(),
    ])
    log.session = await harness.crash()
    await log.read({ bytesMax: BATCH_METERED_BYTES_MAX + 1 })
  },
  async 'an append that expects another head conflicts and writes nothing'(log) {
    await log.append({ count: 5 })
    const { head } = log
    const others = [
      ...[0, 4, 6, 500].map((seqNum) => ({ ...head, tail: { seqNum, timestamp: NOW } })),
      ...[0, 2].map((epoch) => ({ ...head, epoch })),
      { ...head, appendId: 'another' },
    ]
    for (const other of others) {
      const stale = log.copy({ head: other }).append({ writeState: { closed: true } })
      await conflicts(stale, `append after ${JSON.stringify(other)}`)
      await log.check()
    }
    await log.append()
  },
  async 'a log is deleted only at the expected tail, and does not exist afterwards'({ session }) {
    const remove = (expectSeqNum?: number) =>
      session.commit([{ kind: 'delete-log', logId: 'b', expectSeqNum }])
    const log = await LogWriter.create(session, 'b')
    await log.append({ count: 3 })
    for (const seqNum of [0, 2, 4]) await conflicts(remove(seqNum), `deletion at ${seqNum}`)
    await log.check()
    await remove(3)
    equal(await session.head('b'), undefined, 'head')
    equal(await session.read('b', WHOLE_LOG), [], 'blocks')
    await conflicts(log.append(), 'append')
    await conflicts(new LogWriter(session, 'b').append(), 'append at 0')
    await conflicts(session.commit([{ kind: 'set-epoch', logId: 'b', epoch: 2 }]), 'set-epoch')
    await remove()
    await remove(3)
  },

  // Appends that are made before earlier ones have resolved.
  async 'pipelined appends take effect in the order of the calls'(log) {
    const appends = Array.from({ length: 100 }, (_, i) =>
      log.append({
        count: 1 + (i % 3),
        tag: `append-${i}`,
        writeState: i % 5 === 4 ? undefined : log.afterProducer(`p${i % 7}`, i),
      }),
    )
    await Promise.all(appends)
  },
  async 'a failed append fails the later ones and none before it'(log) {
    const requests = Array.from({ length: 20 }, () => log.request())
    const attempts = requests.map((request, i) =>
      log.session.append(i === 7 ? { ...request, expected: { ...request.expected, epoch: 99 } } : request),
    )
    equal(await winners(attempts, 'append'), [0, 1, 2, 3, 4, 5, 6], 'appends that succeeded')
    log.head = requests[6]!.head
    log.written.splice(7)
    await log.check()
    await log.append()
  },
  async 'the first of several appends with the same expectation succeeds, and none that follows another'(
    log,
  ) {
    const [overtaken, late] = [log.copy({}), log.copy({})]
    const requests = [log.request(), overtaken.request(), overtaken.request(), late.request({ tag: 'late' })]
    const attempts = requests.map((request) => log.session.append(request))
    // The third finds the tail that it expects, but after another append.
    equal(await winners(attempts, 'append'), [0], 'appends that succeeded')
  },
  async 'appends to different logs are independent, although their ids share a prefix'({ session }) {
    const ids = ['log', 'log-1', 'log-10', 'log-2', 'lo']
    const logs = await Promise.all(ids.map((logId) => LogWriter.create(session, logId)))
    const failing = new LogWriter(session, 'log-3')
    const appends: Promise<unknown>[] = []
    for (let round = 0; round < 10; round++) {
      appends.push(failing.append())
      for (const log of logs) appends.push(log.append({ tag: log.logId, count: round + 1 }))
    }
    const others = appends.map((_, i) => i).filter((i) => i % 6 !== 0)
    equal(await winners(appends, 'append'), others, 'appends that succeeded')
    await session.commit([{ kind: 'delete-log', logId: 'log-1' }])
    await reclaimAll(session)
    for (const log of logs) if (log.logId !== 'log-1') await log.check()
    equal(await session.read('log-1', WHOLE_LOG), [], 'blocks of the deleted log')
  },
  async 'head and read reflect every resolved append, whatever is in flight'(log) {
    const appends: Promise<unknown>[] = []
    for (let i = 0; i < 20; i++) {
      const done = log.append()
      appends.push(done, log.append(), log.append())
      await done
      const [head, seqNums] = await Promise.all([log.session.head('a'), log.records()])
      const durable = 3 * i + 1
      ok(head !== undefined && head.tail.seqNum >= durable, `the head is older than append ${durable}`)
      ok(seqNums.length >= durable, `the read is older than append ${durable}`)
      equal(seqNums, range(0, seqNums.length), 'sequence numbers')
    }
    await Promise.all(appends)
  },
})
