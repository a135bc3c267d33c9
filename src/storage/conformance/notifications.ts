import type { CatalogChange } from '../contract.ts'
import { equal, ok } from './assert.ts'
import { NOW } from './blocks.ts'
import { Changes } from './changes.ts'
import type { ConformanceCase, Harness, Need } from './harness.ts'
import { LogWriter } from './log-writer.ts'

const NEEDS: readonly Need[] = ['shared', 'reliable-notifications']

export const notificationCases: readonly ConformanceCase[] = [
  {
    title: 'a session is told of what another did to a log',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const writer = await LogWriter.create(author, 'a')
      await changes.told('a', 'creation')
      for (let i = 0; i < 5; i++) {
        changes.clear()
        await writer.append()
        await changes.told('a', 'append')
      }
      const rest: CatalogChange[] = [
        { kind: 'set-epoch', logId: 'a', epoch: 2 },
        { kind: 'delete-log', logId: 'a' },
      ]
      for (const change of rest) {
        changes.clear()
        await author.commit([change])
        await changes.told('a', change.kind)
      }
    },
  },
  {
    title: 'a session is told of every log that changed, however many at once',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const ids = Array.from({ length: 50 }, (_, i) => `log-${i}`)
      await author.commit(ids.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: NOW })))
      await Promise.all(ids.map((logId) => changes.told(logId, 'creation')))
      changes.clear()
      await Promise.all(ids.map((logId) => new LogWriter(author, logId).append()))
      await Promise.all(ids.map((logId) => changes.told(logId, 'append')))
    },
  },
  {
    title: 'whoever is told of a change sees it',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      const follower = await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const writer = await LogWriter.create(author, 'a')
      for (let i = 1; i <= 20; i++) {
        await changes.told('a', 'change')
        changes.clear()
        const appended = writer.append()
        await changes.told('a', 'append')
        equal((await follower.head('a'))?.tail.seqNum, i, 'tail that the follower sees')
        await appended
      }
    },
  },
  {
    title: 'a session is not told from within a call',
    needs: NEEDS,
    async run(harness) {
      let calling = false
      let toldWithin = false
      const changes = changesFor(harness)
      const listen = (logId: string): void => {
        toldWithin ||= calling
        changes.onLogChanged(logId)
      }
      const sessions = [await harness.open(listen), await harness.open(listen)]
      const writer = await LogWriter.create(sessions[0]!, 'a')
      await changes.told('a', 'creation')
      changes.clear()
      calling = true
      const appended = writer.append()
      const calls = sessions.flatMap((session) => [session.head('a'), session.get('streams', 'a')])
      calling = false
      await Promise.all([appended, ...calls])
      await changes.told('a', 'append')
      ok(!toldWithin, 'onLogChanged was called from within a call')
    },
  },
  {
    title: 'a closed session is told nothing',
    needs: NEEDS,
    async run(harness) {
      const [gone, witness] = [changesFor(harness), changesFor(harness)]
      const closing = await harness.open(gone.onLogChanged)
      await harness.open(witness.onLogChanged)
      const author = await harness.open()
      const writer = await LogWriter.create(author, 'a')
      await writer.append()
      await closing.close()
      const before = gone.count
      witness.clear()
      for (let i = 0; i < 5; i++) await writer.append()
      await witness.told('a', 'append')
      equal(gone.count, before, 'number of calls of onLogChanged')
    },
  },
]

function changesFor(harness: Harness): Changes {
  return new Changes(harness.options.notificationMsMax ?? 5000)
}
