import type { CatalogChange, StorageSession } from '../../src/storage/contract.ts'
import { equal, ok, winners } from './assertions.ts'
import { NOW, range } from './blocks.ts'
import { put, valueAt } from './catalog.ts'
import { type Cases, type Harness, onLog } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

/** Two engines on one storage. */
export const sharedCases = onLog({
  async 'one of two appends by different sessions with the same expectation succeeds'(log, harness) {
    const sessions = [log.session, await harness.open()]
    for (let round = 0; round < 30; round++) {
      // Each session is first in every other round.
      const writers = sessions.map((session) => log.copy({ session }))
      const attempts = writers.map((writer, i) => writer.append({ tag: `${round}/${i}`, count: 1 + i }))
      const won = await winners(attempts, 'append')
      equal(won.length, 1, 'number of appends that were made')
      const winner = writers[won[0]!]!
      log.head = winner.head
      log.written.push(winner.written.at(-1)!)
      for (const session of sessions) await log.check(session)
      sessions.reverse()
    }
  },
  async 'blocks that two sessions free at once are subtracted once'({ session }, harness) {
    const sessions = [session, await harness.open()] as const
    for (let round = 0; round < 10; round++) {
      const log = await LogWriter.create(sessions[round % 2]!, `log-${round}`)
      for (let i = 0; i < 3; i++) await log.append({ expiresAt: NOW + i })
      await log.append({ trimPoint: 2 })
      const limits = { now: NOW + 10, trimmedBefore: NOW, blocksMax: 10 }
      const reclaimed = reclaimAll(sessions[0], limits)
      // Each round, the other session begins later.
      for (let i = 0; i < round; i++) await sessions[1].head(log.logId)
      await Promise.all([reclaimed, reclaimAll(sessions[1], limits)])
      for (const expected of log.written) expected.mayBeFreed = expected.block.expiresAt !== null
      for (const session of sessions) {
        equal(await log.records(session), [3], 'sequence numbers')
        await log.check(session)
      }
    }
  },
  async 'a session is not exclusive once another was open, whose end does not affect it'(log, harness) {
    const first = log.session
    const second = await harness.open()
    for (const session of [first, second]) equal(session.isExclusive?.() ?? false, false, 'with another')
    await second.close()
    equal(first.isExclusive?.() ?? false, false, 'after the other was closed')
    await log.append()
    await first.commit([put('a', 1)])
    equal(await valueAt(first, 'a'), 1, 'value')
  },
})

/** For storages with reliable notifications. */
export const notificationCases: Cases = {
  async 'a session is notified of every kind of change to a log, and sees the change'(harness) {
    const notified: string[] = []
    const follower = await harness.open((logId) => notified.push(logId))
    const log = await harness.log()
    const isNotified = (change: string) => eventually(harness, change, () => notified.includes('a'))
    await isNotified('creation')
    for (let i = 1; i <= 20; i++) {
      notified.length = 0
      const appended = log.append()
      await isNotified('append')
      equal((await follower.head('a'))?.tail.seqNum, i, 'tail that the follower sees')
      await appended
    }
    const commits: CatalogChange[] = [
      { kind: 'set-epoch', logId: 'a', epoch: 2 },
      { kind: 'delete-log', logId: 'a' },
    ]
    for (const change of commits) {
      notified.length = 0
      await log.session.commit([change])
      await isNotified(change.kind)
    }
  },
  async 'a session is notified of every changed log, however many change at once'(harness) {
    const notified = new Set<string>()
    await harness.open((logId) => notified.add(logId))
    const author = await harness.open()
    const ids = range(0, 50).map((i) => `log-${i}`)
    const isNotified = (change: string) => eventually(harness, change, () => notified.size === ids.length)
    await author.commit(ids.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: NOW })))
    await isNotified('creation')
    notified.clear()
    await Promise.all(ids.map((logId) => new LogWriter(author, logId).append()))
    await isNotified('append')
  },
  async 'notifications are never delivered synchronously within a call'(harness) {
    let isCalling = false
    let notifiedWithin = false
    let notified = 0
    const listen = (): void => {
      notifiedWithin ||= isCalling
      notified++
    }
    const sessions = [await harness.open(listen), await harness.open(listen)]
    const log = await LogWriter.create(sessions[0]!, 'a')
    await eventually(harness, 'creation', () => notified > 0)
    const before = notified
    isCalling = true
    const appended = log.append()
    const calls = sessions.flatMap((session) => [session.head('a'), session.get('streams', 'a')])
    isCalling = false
    await Promise.all([appended, ...calls])
    await eventually(harness, 'append', () => notified > before)
    ok(!notifiedWithin, 'onLogChanged was called from within a call')
  },
  async 'a closed session gets no notifications'(harness) {
    let [ofClosed, ofWitness] = [0, 0]
    const closing = await harness.open(() => ofClosed++)
    await harness.open(() => ofWitness++)
    const log = await harness.log()
    await log.append()
    await closing.close()
    const before = ofClosed
    ofWitness = 0
    for (let i = 0; i < 5; i++) await log.append()
    await eventually(harness, 'append', () => ofWitness > 0)
    equal(ofClosed, before, 'number of calls of onLogChanged')
  },
}

/** For storages that elect an engine for background work. Without an election, every engine does it. */
export const electionCases: Cases = {
  'a session is elected for background work once those elected before withdraw': (harness) =>
    electAll(harness, (elected) => elected.withdraw()),
  'closing a session withdraws it': (harness) => electAll(harness, ({ session }) => session.close()),
  'a session that withdraws before it is elected is left out': (harness) =>
    electAll(harness, (elected, waiting) => {
      waiting.pop()?.withdraw()
      elected.withdraw()
    }),
}

/** Opens several sessions, or one if only one may be open, and ends each when it is elected. */
async function electAll(
  harness: Harness,
  end: (elected: Candidate, waiting: Candidate[]) => void | Promise<void>,
): Promise<void> {
  const candidates: Candidate[] = []
  for (const _ of range(0, harness.storage.manifest.shared ? 3 : 1)) {
    const session = await harness.open()
    if (session.electForBackgroundWork === undefined) return
    candidates.push(new Candidate(session))
  }
  const waiting = [...candidates]
  while (waiting.length > 0) {
    // Whichever was opened first.
    await eventually(harness, 'onElected(true)', () => waiting.some(({ isElected }) => isElected))
    const [elected] = waiting.splice(
      waiting.findIndex(({ isElected }) => isElected),
      1,
    )
    await end(elected!, waiting)
  }
  for (const candidate of candidates) {
    candidate.withdraw()
    await candidate.session.close()
    ok(!candidate.wasElectedAgain, 'onElected(true) was called after the session withdrew')
  }
}

/** A session that contends for the background work. */
class Candidate {
  readonly session: StorageSession
  isElected = false
  /** Whether it was elected again after it withdrew. */
  wasElectedAgain = false
  readonly #end: () => void
  #hasWithdrawn = false

  constructor(session: StorageSession) {
    this.session = session
    this.#end = session.electForBackgroundWork!((isElected) => {
      this.isElected ||= isElected
      this.wasElectedAgain ||= isElected && this.#hasWithdrawn
    })
  }

  withdraw(): void {
    this.#hasWithdrawn = true
    this.#end()
  }
}

/** Resolves when the condition holds. Rejects if that takes longer than a notification may take. */
async function eventually({ options }: Harness, what: string, holds: () => boolean): Promise<void> {
  const { notificationMsMax = 5000 } = options
  for (let ms = 0; !holds(); ms++) {
    ok(ms < notificationMsMax, `${what}: not notified within ${notificationMsMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
