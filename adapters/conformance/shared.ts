import type { CatalogChange, StorageSession } from '../../src/storage/contract.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { NOW, range, recordsOfBlocks, WHOLE_LOG } from './blocks.ts'
import { EVERYTHING, put, remove, valueAt } from './catalog.ts'
import type { Cases, Harness } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

/** Two engines on one storage. */
export const sharedCases: Cases = {
  async 'a resolved commit is visible to every session, and its versions differ'(harness) {
    const [first, second] = await harness.pair()
    const versions: number[] = []
    for (let i = 0; i < 20; i++) {
      const [author, other] = i % 2 === 0 ? [first, second] : [second, first]
      await author.commit([put('a', i)])
      const document = await other.get('streams', 'a')
      equal(document?.value, i, 'value')
      equal(await other.list('streams', EVERYTHING), [document], 'list')
      versions.push(document!.version)
      if (i % 4 !== 3) continue
      await author.commit([remove('a')])
      equal(await other.get('streams', 'a'), undefined, 'document that was deleted')
    }
    equal(new Set(versions).size, versions.length, 'number of different versions')
  },
  async 'a resolved append is visible to every session'(harness) {
    const [first, second] = await harness.pair()
    const log = await LogWriter.create(first, 'a')
    await log.check(second)
    for (let i = 0; i < 20; i++) {
      await log.append({ count: 2 })
      await log.check(second)
    }
    await second.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
    await conflicts(log.append(), 'append in an epoch that another session ended')
    await second.commit([{ kind: 'delete-log', logId: 'a' }])
    equal(await first.head('a'), undefined, 'head of a log that another session deleted')
    equal(await first.read('a', WHOLE_LOG), [], 'blocks of a log that another session deleted')
  },
  async 'one of two appends by different sessions with the same expectation succeeds'(harness) {
    const sessions = await harness.pair()
    let log = await LogWriter.create(sessions[0], 'a')
    for (let round = 0; round < 30; round++) {
      // Each session is first in every other round.
      const order = round % 2 === 0 ? sessions : [...sessions].reverse()
      const writers = order.map((session) => log.copy({ session }))
      const attempts = writers.map((writer, i) => writer.append({ tag: `${round}/${i}`, count: 1 + i }))
      const won = await winners(attempts, 'append')
      equal(won.length, 1, 'number of appends that were made')
      log = writers[won[0]!]!
      for (const session of sessions) await log.check(session)
    }
  },
  async 'two sessions that append concurrently produce a log without gaps'(harness) {
    const sessions = await harness.pair()
    await LogWriter.create(sessions[0], 'a')
    const bodies = await Promise.all(
      sessions.map(async (session, i) => {
        const appended: string[] = []
        while (appended.length < 40) {
          const writer = new LogWriter(session, 'a', (await session.head('a'))!)
          const { seqNum } = writer.head.tail
          const tag = `${i}/${appended.length}`
          if ((await winners([writer.append({ tag })], 'append')).length > 0)
            appended.push(`${tag}#${seqNum}`)
        }
        return appended
      }),
    )
    const records = recordsOfBlocks(await sessions[0].read('a', WHOLE_LOG))
    const seqNums = records.map(({ seqNum }) => seqNum)
    equal(seqNums, range(0, 80), 'sequence numbers')
    const texts = records.map(({ body }) => new TextDecoder().decode(body))
    equal([...texts].sort(), bodies.flat().sort(), 'bodies')
  },
  async 'blocks that two sessions free at once are subtracted once'(harness) {
    const sessions = await harness.pair()
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
  async 'a session is not exclusive once another was open, whose end does not affect it'(harness) {
    const [first, second] = await harness.pair()
    const log = await LogWriter.create(first, 'a')
    for (const session of [first, second]) equal(session.isExclusive?.() ?? false, false, 'with another')
    await second.close()
    equal(first.isExclusive?.() ?? false, false, 'after the other was closed')
    await log.append()
    await log.check()
    await first.commit([put('a', 1)])
    equal(await valueAt(first, 'a'), 1, 'value')
  },
}

/** For storages with reliable notifications. */
export const notificationCases: Cases = {
  async 'a session is notified of every kind of change to a log, and sees the change'(harness) {
    const changes = new ChangeRecorder(timeoutMsOf(harness))
    const follower = await harness.open(changes.onLogChanged)
    const log = await harness.log()
    await changes.waitFor('a', 'creation')
    for (let i = 1; i <= 20; i++) {
      changes.clear()
      const appended = log.append()
      await changes.waitFor('a', 'append')
      equal((await follower.head('a'))?.tail.seqNum, i, 'tail that the follower sees')
      await appended
    }
    const commits: CatalogChange[] = [
      { kind: 'set-epoch', logId: 'a', epoch: 2 },
      { kind: 'delete-log', logId: 'a' },
    ]
    for (const change of commits) {
      changes.clear()
      await log.session.commit([change])
      await changes.waitFor('a', change.kind)
    }
  },
  async 'a session is notified of every changed log, however many change at once'(harness) {
    const changes = new ChangeRecorder(timeoutMsOf(harness))
    await harness.open(changes.onLogChanged)
    const author = await harness.open()
    const ids = Array.from({ length: 50 }, (_, i) => `log-${i}`)
    await author.commit(ids.map((logId) => ({ kind: 'create-log', logId, epoch: 1, createdAt: NOW })))
    await Promise.all(ids.map((logId) => changes.waitFor(logId, 'creation')))
    changes.clear()
    await Promise.all(ids.map((logId) => new LogWriter(author, logId).append()))
    await Promise.all(ids.map((logId) => changes.waitFor(logId, 'append')))
  },
  async 'notifications are never delivered synchronously within a call'(harness) {
    let calling = false
    let notifiedWithin = false
    const changes = new ChangeRecorder(timeoutMsOf(harness))
    const listen = (logId: string): void => {
      notifiedWithin ||= calling
      changes.onLogChanged(logId)
    }
    const sessions = [await harness.open(listen), await harness.open(listen)]
    const log = await LogWriter.create(sessions[0]!, 'a')
    await changes.waitFor('a', 'creation')
    changes.clear()
    calling = true
    const appended = log.append()
    const calls = sessions.flatMap((session) => [session.head('a'), session.get('streams', 'a')])
    calling = false
    await Promise.all([appended, ...calls])
    await changes.waitFor('a', 'append')
    ok(!notifiedWithin, 'onLogChanged was called from within a call')
  },
  async 'a closed session gets no notifications'(harness) {
    const [gone, witness] = [0, 1].map(() => new ChangeRecorder(timeoutMsOf(harness))) as [
      ChangeRecorder,
      ChangeRecorder,
    ]
    const closing = await harness.open(gone.onLogChanged)
    await harness.open(witness.onLogChanged)
    const log = await harness.log()
    await log.append()
    await closing.close()
    const before = gone.count
    witness.clear()
    for (let i = 0; i < 5; i++) await log.append()
    await witness.waitFor('a', 'append')
    equal(gone.count, before, 'number of calls of onLogChanged')
  },
}

function timeoutMsOf({ options }: Harness): number {
  return options.notificationMsMax ?? 5000
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
    const notified = new Promise<void>((resolve) => {
      const check = (): void => {
        if (!this.#notified.includes(logId)) return
        this.#waiters.delete(check)
        resolve()
      }
      this.#waiters.add(check)
      check()
    })
    return within(this.#timeoutMs, `${description}: onLogChanged('${logId}') was not called`, notified)
  }

  clear(): void {
    this.#notified.length = 0
  }
}

/** For storages that elect an engine for background work. Without an election, every engine does it. */
export const electionCases: Cases = {
  'a session is elected for background work once those elected before withdraw': (harness) =>
    electAll(harness, (elected) => elected.withdraw()),
  'closing a session withdraws it': (harness) => electAll(harness, ({ session }) => session.close()),
  'a session that withdraws before it is elected is left out': (harness) =>
    electAll(harness, (elected, waiting) => {
      const [first] = waiting
      first?.withdraw()
      waiting.delete(first!)
      elected.withdraw()
    }),
}

/** Opens several sessions, or one if only one may be open, and ends each when it is elected. */
async function electAll(
  harness: Harness,
  end: (elected: Candidate, waiting: Set<Candidate>) => void | Promise<void>,
): Promise<void> {
  const waiting = new Set<Candidate>()
  for (let i = 0; i < (harness.storage.manifest.shared ? 3 : 1); i++) {
    const session = await harness.open()
    if (session.electForBackgroundWork === undefined) return
    waiting.add(new Candidate(session))
  }
  const all = [...waiting]
  while (waiting.size > 0) {
    // Whichever was opened first.
    const next = Promise.race([...waiting].map(({ elected }) => elected))
    const elected = await within(timeoutMsOf(harness), 'onElected(true) was not called', next)
    waiting.delete(elected)
    await end(elected, waiting)
  }
  for (const candidate of all) {
    candidate.withdraw()
    await candidate.session.close()
    ok(!candidate.wasElectedAgain, 'onElected(true) was called after the session withdrew')
  }
}

/** A session that contends for the background work. */
class Candidate {
  readonly session: StorageSession
  /** Resolves once the session is elected. */
  readonly elected: Promise<this>
  /** Whether it was elected again after it withdrew. */
  wasElectedAgain = false
  #end: () => void = () => {}
  #hasWithdrawn = false

  constructor(session: StorageSession) {
    this.session = session
    this.elected = new Promise((resolve) => {
      this.#end = session.electForBackgroundWork!((isElected) => {
        this.wasElectedAgain ||= isElected && this.#hasWithdrawn
        if (isElected) resolve(this)
      })
    })
  }

  withdraw(): void {
    this.#hasWithdrawn = true
    this.#end()
  }
}

async function within<T>(timeoutMs: number, message: string, result: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${message} within ${timeoutMs} ms`)), timeoutMs)
  })
  return Promise.race([result, timeout]).finally(() => clearTimeout(timer))
}
