import { type WriteState, withAppend } from '../../src/core/sequence.ts'
import { INTEGER_MAX, PRODUCERS_MAX } from '../../src/model/limits.ts'
import type { Head, StorageSession } from '../../src/storage/contract.ts'
import { type ConformanceCase, conflicts, equal, ok } from './harness.ts'
import { LogWriter, NOW } from './log-writer.ts'

/** The write state of a head: whether the log is closed, and what its producers have appended. */
export const writeStateCases: readonly ConformanceCase[] = [
  {
    title: 'an append replaces the write state, and other appends and epochs keep it',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append()
      for (const writeState of states(writer)) {
        await writer.append({ writeState })
        equal(await session.head('a'), writer.head, 'head after an append that changes the write state')
        await writer.append()
        equal(await session.head('a'), writer.head, 'head after an append that keeps the write state')
      }
      const epoch = writer.head.epoch + 1
      await session.commit([{ kind: 'set-epoch', logId: 'a', epoch }])
      writer.head = { ...writer.head, epoch }
      equal(await session.head('a'), writer.head, 'head in the next epoch')
      await writer.extend([{ below: INTEGER_MAX, after: NOW, until: null }])
      await writer.append()
      equal(await session.head('a'), writer.head, 'head with extensions')
    },
  },
  {
    title: 'an append that conflicts does not change the write state',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ writeState: { streamSeq: 'a' } })
      const stale = new LogWriter(session, 'a', { ...writer.head, appendId: 'another' })
      await conflicts(stale.append({ writeState: { closed: true } }), 'append after another head')
      equal(await session.head('a'), writer.head, 'head')
    },
  },
  {
    title: 'pipelined appends replace the write state one after another',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const appends: Promise<unknown>[] = []
      for (let i = 0; i < 40; i++) {
        appends.push(
          i % 5 === 4 ? writer.append() : writer.append({ writeState: next(writer, `p${i % 7}`, i) }),
        )
      }
      await Promise.all(appends)
      equal(await session.head('a'), writer.head, 'head')
    },
  },
  {
    title: 'a caller may modify the write state that it reads',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ writeState: next(writer, 'p', 0) })
      const expected = structuredClone(writer.head)
      const { writeState } = (await session.head('a'))!
      Object.assign(writeState!.producers![0]!, { epoch: 9 })
      Object.assign(writeState!.producers![0]!.start, { seqNum: 9 })
      Object.assign(writeState!, { closed: true, producers: [] })
      equal(await session.head('a'), expected, 'head')
    },
  },
  {
    title: 'a head has 1,000 producers, which appends replace and drop',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      // The longest id: 128 bytes.
      const idOf = (i: number) => String(i).padStart(128, '0')
      let state: WriteState | undefined
      for (let i = 0; i < PRODUCERS_MAX; i++) state = withProducer(writer, state, idOf(i), 0)
      await writer.append({ writeState: state })
      equal(await session.head('a'), writer.head, 'head with all producers')
      for (const id of [idOf(500), 'new', idOf(500), idOf(999), 'newer']) {
        await writer.append({ writeState: next(writer, id, 1) })
        equal(await session.head('a'), writer.head, `head after an append of ${id}`)
      }
    },
  },
  {
    title: 'the write state survives closing and opening again, appends and reclaiming',
    needs: ['reopen'],
    async run(harness) {
      let session = await harness.open()
      let writer = await LogWriter.create(session, 'a')
      for (let round = 0; round < 3; round++) {
        for (const writeState of states(writer)) await writer.append({ writeState, expiresAt: NOW + round })
        await writer.append({ expiresAt: NOW + round })
        session = await harness.reopen()
        equal(await session.head('a'), writer.head, 'head')
        await freeAll(session, NOW + round)
        writer = new LogWriter(session, 'a', (await session.head('a'))!, writer.written)
      }
      await writer.append({ writeState: { ...writer.head.writeState, closed: true } })
      session = await harness.reopen()
      equal(await session.head('a'), writer.head, 'head of a closed log')
    },
  },
  {
    title: 'the write state survives a crash with calls in flight',
    needs: ['reopen'],
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      const heads: Head[] = []
      const appends: Promise<unknown>[] = []
      for (let i = 0; i < 30; i++) {
        const changed = i % 3 === 2 ? { ...writer.head.writeState, streamSeq: `seq ${i}` } : undefined
        appends.push(writer.append({ writeState: changed ?? next(writer, `p${i % 4}`, i) }))
        heads.push(writer.head)
      }
      await appends[9]
      const recovered = await harness.crash()
      const head = await recovered.head('a')
      const last = heads.findIndex(({ appendId }) => appendId === head?.appendId)
      ok(last >= 9, `the log ends with append ${last}, but 9 was acknowledged`)
      equal(head, heads[last], 'head')
      await Promise.allSettled(appends)
      let current = new LogWriter(recovered, 'a', (await recovered.head('a'))!)
      await current.append({ writeState: { ...next(current, 'p0', 99), closed: true } })
      const again = await harness.crash()
      equal(await again.head('a'), current.head, 'head of a closed log')
      current = new LogWriter(again, 'a', current.head)
      await current.append()
      equal(await again.head('a'), current.head, 'head after another append')
    },
  },
  {
    title: 'a log created with the id of a deleted one has no write state',
    async run(harness) {
      const session = await harness.open()
      const writer = await LogWriter.create(session, 'a')
      await writer.append({ writeState: { closed: true } })
      await session.commit([{ kind: 'delete-log', logId: 'a' }])
      await LogWriter.create(session, 'a').catch(() => {})
      equal((await session.head('a'))?.writeState, undefined, 'write state')
    },
  },
]

/** Write states in the order in which an engine might leave them. */
function* states(writer: LogWriter): Generator<WriteState> {
  yield next(writer, '\u{1f600}', 0)
  yield { ...writer.head.writeState, streamSeq: '\u0000 \ue000' }
  yield next(writer, 'p', INTEGER_MAX)
  yield next(writer, '\u{1f600}', 1)
  yield next(writer, 'q', 0)
}

function next(writer: LogWriter, id: string, seq: number): WriteState {
  return withProducer(writer, writer.head.writeState, id, seq)
}

function withProducer(
  { head }: LogWriter,
  state: WriteState | undefined,
  id: string,
  seq: number,
): WriteState {
  const { tail } = head
  const end = { seqNum: tail.seqNum + 1, timestamp: Math.max(tail.timestamp, NOW) }
  return withAppend(state, { producer: { id, epoch: seq % 3, seq } }, { start: tail, end }, NOW)!
}

async function freeAll(session: StorageSession, now: number): Promise<void> {
  while ((await session.reclaim({ now, trimmedBefore: now, blocksMax: 100 })).more) {}
}
