import type { CatalogChange } from '../../src/storage/contract.ts'
import { type ConformanceCase, equal, type Harness, type Need, ok } from './harness.ts'
import { LogWriter, NOW } from './log-writer.ts'

const NEEDS: readonly Need[] = ['shared', 'reliable-notifications']

export const notificationCases: readonly ConformanceCase[] = [
  {
    title: 'a session is notified of every kind of change to a log',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const writer = await LogWriter.create(author, 'a')
      await changes.waitFor('a', 'creation')
      for (let i = 0; i < 5; i++) {
        changes.clear()
        await writer.append()
        await changes.waitFor('a', 'append')
      }
      const commits: CatalogChange[] = [
        { kind: 'set-epoch', logId: 'a', epoch: 2 },
        { kind: 'delete-log', logId: 'a' },
      ]
      for (const change of commits) {
        changes.clear()
        await author.commit([change])
        await changes.waitFor('a', change.kind)
      }
    },
  },
  {
    title: 'a session is notified of every changed log, however many change at once',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const ids = Array.from({ length: 50 }, (_, i) => `log-${i}`)
      await author.commit(ids.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: NOW })))
      await Promise.all(ids.map((logId) => changes.waitFor(logId, 'creation')))
      changes.clear()
      await Promise.all(ids.map((logId) => new LogWriter(author, logId).append()))
      await Promise.all(ids.map((logId) => changes.waitFor(logId, 'append')))
    },
  },
  {
    title: 'a notified session sees the change',
    needs: NEEDS,
    async run(harness) {
      const changes = changesFor(harness)
      const follower = await harness.open(changes.onLogChanged)
      const author = await harness.open()
      const writer = await LogWriter.create(author, 'a')
      for (let i = 1; i <= 20; i++) {
        await changes.waitFor('a', 'change')
        changes.clear()
        const appended = writer.append()
        await changes.waitFor('a', 'append')
        equal((await follower.head('a'))?.tail.seqNum, i, 'tail that the follower sees')
        await appended
      }
    },
  },
  {
    title: 'notifications are never delivered synchronously within a call',
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
      await changes.waitFor('a', 'creation')
      changes.clear()
      calling = true
      const appended = writer.append()
      const calls = sessions.flatMap((session) => [session.head('a'), session.get('streams', 'a')])
      calling = false
      await Promise.all([appended, ...calls])
      await changes.waitFor('a', 'append')
      ok(!toldWithin, 'onLogChanged was called from within a call')
    },
  },
  {
    title: 'a closed session gets no notifications',
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
      await witness.waitFor('a', 'append')
      equal(gone.count, before, 'number of calls of onLogChanged')
    },
  },
]

function changesFor(harness: Harness): ChangeRecorder {
  return new ChangeRecorder(harness.options.notificationMsMax ?? 5000)
}

/** Records the calls of `onLogChanged`, so that a test can wait for one. */
class ChangeRecorder {
  readonly #timeoutMs: number
  readonly #notified: string[] = []
  readonly #waiters = new Set<() => void>()

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** Passed to `open`. */
  readonly onLogChanged = (logId: string): void => {
    this.#notified.push(logId)
    for (const check of this.#waiters) check()
  }

  get count(): number {
    return this.#notified.length
  }

  /** Resolves once a change of the log is notified. Ignores notifications before `clear`. */
  waitFor(logId: string, description: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!this.#notified.includes(logId)) return
        clearTimeout(timer)
        this.#waiters.delete(check)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiters.delete(check)
        reject(
          new Error(`${description}: onLogChanged('${logId}') was not called within ${this.#timeoutMs} ms`),
        )
      }, this.#timeoutMs)
      this.#waiters.add(check)
      check()
    })
  }

  clear(): void {
    this.#notified.length = 0
  }
}
