import { type ConformanceCase, equal, ok, winners } from './harness.ts'
import { LogWriter, recordsOfBlocks, seqNumsOf, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'

/** Appends that are made before earlier ones have resolved. */
export const pipelineCases: readonly ConformanceCase[] = [
  {
    title: 'pipelined appends take effect in the order of the calls',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const appends = Array.from({ length: 100 }, (_, i) =>
        writer.append({ count: 1 + (i % 3), tag: `append-${i}` }),
      )
      await Promise.all(appends)
      equal(await session.head('a'), writer.head, 'head')
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'a failed append fails the later ones and none before it',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const requests = Array.from({ length: 20 }, () => writer.request())
      const broken = requests.map((request, i) =>
        i === 7 ? { ...request, expected: { ...request.expected, epoch: 99 } } : request,
      )
      const won = await winners(
        broken.map((request) => session.append(request)),
        'append',
      )
      equal(won, [0, 1, 2, 3, 4, 5, 6], 'appends that succeeded')
      equal(await session.head('a'), requests[6]!.head, 'head')
      checkRead(writer.written.slice(0, 7), WHOLE_LOG, await session.read('a', WHOLE_LOG))
      await new LogWriter(session, 'a', requests[6]!.head).append()
      equal((await session.head('a'))?.tail.seqNum, 8, 'tail after an append at the reloaded head')
    },
  },
  {
    title: 'an append after one that conflicted fails even if the tail is as expected',
    async run(harness) {
      const session = await harness.open()
      const { head } = await LogWriter.create(session, 'a')
      const overtaken = new LogWriter(session, 'a', head)
      const requests = [overtaken.request({ count: 1 }), overtaken.request({ count: 1 })]
      const other = new LogWriter(session, 'a', head)
      await other.append({ count: 1 })
      const won = await winners(
        requests.map((request) => session.append(request)),
        'append',
      )
      equal(won, [], 'appends that succeeded')
      equal(await session.head('a'), other.head, 'head')
      checkRead(other.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
  {
    title: 'the first of several concurrent appends with the same expectation succeeds',
    async run(harness) {
      const session = await harness.open()
      const { head } = await LogWriter.create(session, 'a')
      const requests = ['x', 'y', 'z'].map((tag) => new LogWriter(session, 'a', head).request({ tag }))
      const won = await winners(
        requests.map((request) => session.append(request)),
        'append',
      )
      equal(won, [0], 'appends that succeeded')
      checkRead(
        [{ block: requests[0]!.block, mayBeFreed: false }],
        WHOLE_LOG,
        await session.read('a', WHOLE_LOG),
      )
    },
  },
  {
    title: 'appends to different logs are independent',
    async run(harness) {
      const session = await harness.open()
      const writers = await Promise.all(['a', 'b', 'c'].map((logId) => LogWriter.create(session, logId)))
      const failing = new LogWriter(session, 'missing')
      const appends: Promise<unknown>[] = []
      for (let round = 0; round < 30; round++) {
        for (const writer of writers) appends.push(writer.append({ tag: writer.logId }))
        appends.push(failing.append())
      }
      const won = await winners(appends, 'append')
      equal(
        won,
        appends.map((_, i) => i).filter((i) => i % 4 !== 3),
        'appends that succeeded',
      )
      for (const writer of writers) {
        equal(await session.head(writer.logId), writer.head, `head of ${writer.logId}`)
        checkRead(writer.written, WHOLE_LOG, await session.read(writer.logId, WHOLE_LOG))
      }
    },
  },
  {
    title: 'head and read reflect every resolved append, whatever is in flight',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const appends: Promise<unknown>[] = []
      for (let i = 0; i < 20; i++) {
        const done = writer.append()
        appends.push(done, writer.append(), writer.append())
        await done
        const [head, blocks] = await Promise.all([session.head('a'), session.read('a', WHOLE_LOG)])
        const durable = 3 * i + 1
        ok(head !== undefined && head.tail.seqNum >= durable, `the head is older than append ${durable}`)
        const records = recordsOfBlocks(blocks)
        ok(records.length >= durable, `the read is older than append ${durable}`)
        seqNumsOf(blocks).forEach((seqNum, index) => {
          equal(seqNum, index, 'sequence number')
        })
      }
      await Promise.all(appends)
      checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    },
  },
]
