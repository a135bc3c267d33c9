import type { CatalogChange, StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict } from '../../src/storage/errors.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { NOW, range, recordsOfBlocks, WHOLE_LOG } from './blocks.ts'
import { put } from './catalog.ts'
import type { Cases, Harness } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

/** Two engines on one storage. */
export const sharedCases: Cases = {
  async 'a resolved commit is visible to every session'(harness) {
    const [first, second] = await twoSessions(harness)
    for (let i = 0; i < 10; i++) {
      await first.commit([put('a', i)])
      const document = await second.get('streams', 'a')
      equal(document?.value, i, 'value')
      equal(await second.list('streams', { prefix: 'a', after: '', limit: 10 }), [document], 'list')
      await second.commit([put('b', i, i === 0 ? null : (await second.get('streams', 'b'))!.version)])
      equal((await first.get('streams', 'b'))?.value, i, 'value of the other')
    }
    await first.commit([{ kind: 'delete', collection: 'streams', key: 'a' }])
    equal(await second.get('streams', 'a'), undefined, 'document that was deleted')
  },
  async 'a resolved append is visible to every session'(harness) {
    const [first, second] = await twoSessions(harness)
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
    const sessions = await twoSessions(harness)
    let log = await LogWriter.create(sessions[0], 'a')
    for (let round = 0; round < 30; round++) {
      // Each session is first in every other round.
      const order = round % 2 === 0 ? sessions : [...sessions].reverse()
      const writers = order.map((session) => new LogWriter(session, 'a', log.head, log.written))
      const attempts = writers.map((writer, i) => writer.append({ tag: `${round}/${i}`, count: 1 + i }))
      const won = await winners(attempts, 'append')
      equal(won.length, 1, 'number of appends that were made')
      log = writers[won[0]!]!
      for (const session of sessions) await log.check(session)
    }
  },
  async 'two sessions that append concurrently produce a log without gaps'(harness) {
    const sessions = await twoSessions(harness)
    await LogWriter.create(sessions[0], 'a')
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
    const records = recordsOfBlocks(await sessions[0].read('a', WHOLE_LOG))
    const seqNums = records.map(({ seqNum }) => seqNum)
    equal(seqNums, range(0, 80), 'sequence numbers')
    const texts = records.map(({ body }) => new TextDecoder().decode(body))
    equal([...texts].sort(), bodies.flat().sort(), 'bodies')
  },
  async 'one of two commits by different sessions with the same expectation succeeds completely'(harness) {
    const sessions = await twoSessions(harness)
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
      const loser = await sessions[0].get('streams', `by-${1 - won[0]!}`)
      equal(loser?.value === round, false, 'whether the loser wrote its other document')
    }
  },
  async 'versions assigned by two sessions differ'(harness) {
    const sessions = await twoSessions(harness)
    const versions: number[] = []
    for (let i = 0; i < 20; i++) {
      const session = sessions[i % 2]!
      await session.commit([put('a', 0)])
      versions.push((await sessions[0].get('streams', 'a'))!.version)
      if (i % 4 === 3) await session.commit([{ kind: 'delete', collection: 'streams', key: 'a' }])
    }
    equal(new Set(versions).size, versions.length, 'number of different versions')
  },
  async 'blocks that one session frees are freed for all'(harness) {
    const [first, second] = await twoSessions(harness)
    const log = await LogWriter.create(first, 'a')
    await log.append({ expiresAt: NOW })
    await log.append()
    await reclaimAll(second, { now: NOW, trimmedBefore: 0, blocksMax: 10 })
    for (const session of [first, second]) equal(await log.records(session), [1], 'sequence numbers')
  },
  async 'blocks that two sessions free at once are subtracted once'(harness) {
    const sessions = await twoSessions(harness)
    for (let round = 0; round < 10; round++) {
      const log = await LogWriter.create(sessions[round % 2]!, `log-${round}`)
      for (let i = 0; i < 3; i++) await log.append({ expiresAt: NOW + i })
      await log.append({ trimPoint: 2, trimmedAt: NOW })
      const limits = { now: NOW + 10, trimmedBefore: NOW, blocksMax: 10 }
      const reclaimed = reclaimAll(sessions[0], limits)
      // Each round, the other session begins later.
      for (let i = 0; i < round; i++) await sessions[1].head(log.logId)
      await Promise.all([reclaimed, reclaimAll(sessions[1], limits)])
      equal(await log.records(), [3], 'sequence numbers')
      for (const session of sessions) await log.measured(session)
    }
  },
  async 'a session is not exclusive once another one was open'(harness) {
    const [first, second] = await twoSessions(harness)
    for (const session of [first, second]) equal(session.isExclusive?.() ?? false, false, 'with another')
    await second.close()
    equal(first.isExclusive?.() ?? false, false, 'after the other was closed')
  },
  async 'closing one session does not affect the others'(harness) {
    const [first, second] = await twoSessions(harness)
    const log = await LogWriter.create(first, 'a')
    await second.close()
    await log.append()
    await log.check()
    await first.commit([put('a', 1)])
    equal((await first.get('streams', 'a'))?.value, 1, 'value')
  },
}

async function twoSessions(harness: Harness): Promise<[StorageSession, StorageSession]> {
  return [await harness.open(), await harness.open()]
}

/** For storages with reliable notifications. */
export const notificationCases: Cases = {
  async 'a session is notified of every kind of change to a log'(harness) {
    const changes = changesFor(harness)
    await harness.open(changes.onLogChanged)
    const log = await harness.log()
    await changes.waitFor('a', 'creation')
    for (let i = 0; i < 5; i++) {
      changes.clear()
      await log.append()
      await changes.waitFor('a', 'append')
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
  async 'a notified session sees the change'(harness) {
    const changes = changesFor(harness)
    const follower = await harness.open(changes.onLogChanged)
    const log = await harness.log()
    for (let i = 1; i <= 20; i++) {
      await changes.waitFor('a', 'change')
      changes.clear()
      const appended = log.append()
      await changes.waitFor('a', 'append')
      equal((await follower.head('a'))?.tail.seqNum, i, 'tail that the follower sees')
      await appended
    }
  },
  async 'notifications are never delivered synchronously within a call'(harness) {
    let calling = false
    let notifiedWithin = false
    const changes = changesFor(harness)
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
    const [gone, witness] = [changesFor(harness), changesFor(harness)]
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

function changesFor(harness: Harness): ChangeRecorder {
  return new ChangeRecorder(timeoutMsOf(harness))
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
  async 'a session is elected for background work once those elected before withdraw'(harness) {
    for (let candidates = await openCandidates(harness); candidates.length > 0; ) {
      const elected = await nextElected(harness, candidates)
      elected.withdraw()
      candidates = candidates.filter((one) => one !== elected)
    }
  },
  async 'closing a session withdraws it'(harness) {
    for (let candidates = await openCandidates(harness); candidates.length > 0; ) {
      const elected = await nextElected(harness, candidates)
      await elected.session.close()
      candidates = candidates.filter((one) => one !== elected)
    }
  },
  async 'a session that withdrew is not elected again, and withdrawing twice does nothing'(harness) {
    const candidates = await openCandidates(harness)
    if (candidates.length === 0) return
    const elected = await nextElected(harness, candidates)
    const [waiting, last] = candidates.filter((one) => one !== elected)
    // The second candidate may not have been elected yet.
    for (const candidate of [waiting, elected, waiting, elected]) candidate?.withdraw()
    if (last !== undefined) await nextElected(harness, [last])
    await last?.session.close()
    for (const candidate of [elected, waiting]) {
      candidate?.withdraw()
      await candidate?.session.close()
      ok(candidate?.wasElectedAgain !== true, 'onElected(true) was called after the session withdrew')
    }
  },
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

/** Opens three sessions, or one if only one may be open. Returns none without elections. */
async function openCandidates(harness: Harness): Promise<Candidate[]> {
  const candidates: Candidate[] = []
  for (let i = 0; i < (harness.storage.manifest.shared ? 3 : 1); i++) {
    const session = await harness.open()
    if (session.electForBackgroundWork === undefined) return []
    candidates.push(new Candidate(session))
  }
  return candidates
}

/** Waits until one is elected, whichever was opened first. */
function nextElected(harness: Harness, candidates: readonly Candidate[]): Promise<Candidate> {
  const elected = Promise.race(candidates.map((one) => one.elected))
  return within(timeoutMsOf(harness), 'onElected(true) was not called', elected)
}

async function within<T>(timeoutMs: number, message: string, result: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${message} within ${timeoutMs} ms`)), timeoutMs)
  })
  return Promise.race([result, timeout]).finally(() => clearTimeout(timer))
}
