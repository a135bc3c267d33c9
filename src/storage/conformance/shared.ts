import { StorageConflict } from '../errors.ts'
import { conflicts, equal, winners } from './assert.ts'
import { NOW, range, recordsOf } from './blocks.ts'
import { put } from './catalog.ts'
import type { ConformanceCase } from './harness.ts'
import { LogWriter, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './read-oracle.ts'

/** Two engines, one storage. */
export const sharedCases: readonly ConformanceCase[] = [
  {
    title: 'a commit that resolved is seen by every session',
    needs: ['shared'],
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()]
      for (let i = 0; i < 10; i++) {
        await one.commit([put('a', i)])
        const document = await other.get('streams', 'a')
        equal(document?.value, i, 'value')
        equal(await other.list('streams', { prefix: 'a', after: '', limit: 10 }), [document], 'list')
        await other.commit([put('b', i, i === 0 ? null : (await other.get('streams', 'b'))!.version)])
        equal((await one.get('streams', 'b'))?.value, i, 'value of the other')
      }
      await one.commit([{ kind: 'delete', collection: 'streams', key: 'a' }])
      equal(await other.get('streams', 'a'), undefined, 'document that was deleted')
    },
  },
  {
    title: 'an append that resolved is seen by every session',
    needs: ['shared'],
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(one, 'a')
      equal(await other.head('a'), writer.head, 'head of a new log')
      for (let i = 0; i < 20; i++) {
        await writer.append({ count: 2 })
        equal(await other.head('a'), writer.head, 'head')
        checkRead(writer.written, WHOLE_LOG, await other.read('a', WHOLE_LOG))
      }
      await other.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
      await conflicts(writer.append(), 'append in an epoch that another session ended')
      await other.commit([{ kind: 'delete-log', logId: 'a' }])
      equal(await one.head('a'), undefined, 'head of a log that another session deleted')
      equal(await one.read('a', WHOLE_LOG), [], 'blocks of a log that another session deleted')
    },
  },
  {
    title: 'of appends of two sessions that expect the same, one is made',
    needs: ['shared'],
    async run(harness) {
      const sessions = [await harness.open(), await harness.open()]
      let { head } = await LogWriter.create(sessions[0]!, 'a')
      for (let round = 0; round < 30; round++) {
        // Each goes first in every other round.
        const order = round % 2 === 0 ? sessions : [...sessions].reverse()
        const requests = order.map((session, i) =>
          new LogWriter(session, 'a', head).request({ tag: `${round}/${i}`, count: 1 + i }),
        )
        const won = await winners(
          requests.map((request, i) => order[i]!.append(request)),
          'append',
        )
        equal(won.length, 1, 'number of appends that were made')
        const { block, head: next } = requests[won[0]!]!
        for (const session of sessions) {
          equal(await session.head('a'), next, 'head')
          const added = { ...WHOLE_LOG, from: { seqNum: head.tail.seqNum } }
          const records = recordsOf(await session.read('a', added)).filter(
            ({ seqNum }) => seqNum >= block.firstSeqNum,
          )
          equal(records, recordsOf([block]), 'records that were added')
        }
        head = next
      }
    },
  },
  {
    title: 'two sessions that append whenever they can leave a dense log',
    needs: ['shared'],
    async run(harness) {
      const sessions = [await harness.open(), await harness.open()]
      await LogWriter.create(sessions[0]!, 'a')
      const bodies = await Promise.all(
        sessions.map(async (session, i) => {
          const appended: string[] = []
          while (appended.length < 40) {
            const writer = new LogWriter(session, 'a', (await session.head('a'))!)
            const tag = `${i}/${appended.length}`
            try {
              const block = await writer.append({ tag })
              appended.push(`${tag}#${block.firstSeqNum}`)
            } catch (error) {
              if (!StorageConflict.is(error)) throw error
            }
          }
          return appended
        }),
      )
      const records = recordsOf(await sessions[0]!.read('a', WHOLE_LOG))
      equal(
        records.map(({ seqNum }) => seqNum),
        range(0, 80),
        'sequence numbers',
      )
      const texts = records.map(({ body }) => new TextDecoder().decode(body))
      equal([...texts].sort(), bodies.flat().sort(), 'bodies')
    },
  },
  {
    title: 'of commits of two sessions that expect the same, one is made as a whole',
    needs: ['shared'],
    async run(harness) {
      const sessions = [await harness.open(), await harness.open()]
      for (let round = 0; round < 20; round++) {
        const attempts = sessions.map((session, i) =>
          session.commit([
            put(`by-${i}`, round),
            put(`name-${round}`, i, null),
            { kind: 'create-log', logId: `log-${round}`, epoch: i + 1, createdAt: NOW },
          ]),
        )
        const won = await winners(attempts, 'commit')
        equal(won.length, 1, 'number of commits that were made')
        for (const session of sessions) {
          equal((await session.get('streams', `name-${round}`))?.value, won[0], 'value')
          equal((await session.head(`log-${round}`))?.epoch, won[0]! + 1, 'epoch of the log')
          equal((await session.get('streams', `by-${won[0]}`))?.value, round, 'other document of the winner')
        }
        const loser = await sessions[0]!.get('streams', `by-${1 - won[0]!}`)
        equal(loser?.value === round, false, 'whether the loser wrote its other document')
      }
    },
  },
  {
    title: 'versions made by two sessions differ',
    needs: ['shared'],
    async run(harness) {
      const sessions = [await harness.open(), await harness.open()]
      const versions: number[] = []
      for (let i = 0; i < 20; i++) {
        await sessions[i % 2]!.commit([put('a', 0)])
        versions.push((await sessions[0]!.get('streams', 'a'))!.version)
        if (i % 4 === 3) await sessions[i % 2]!.commit([{ kind: 'delete', collection: 'streams', key: 'a' }])
      }
      equal(new Set(versions).size, versions.length, 'number of different versions')
    },
  },
  {
    title: 'what one session frees is freed for all',
    needs: ['shared'],
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(one, 'a')
      await writer.append({ expiresAt: NOW })
      await writer.append()
      while ((await other.reclaim({ now: NOW, trimmedBefore: 0, blocksMax: 10 })).more) {}
      for (const session of [one, other]) {
        const records = recordsOf(await session.read('a', WHOLE_LOG))
        equal(
          records.map(({ seqNum }) => seqNum),
          [1],
          'sequence numbers',
        )
      }
    },
  },
  {
    title: 'closing one session leaves the others alone',
    needs: ['shared'],
    async run(harness) {
      const [one, other] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(one, 'a')
      await other.close()
      await writer.append()
      await one.commit([put('a', 1)])
      equal(await one.head('a'), writer.head, 'head')
      equal((await one.get('streams', 'a'))?.value, 1, 'value')
    },
  },
]
