import type { StorageSession } from '../../src/storage/contract.ts'
import { StorageConflict } from '../../src/storage/errors.ts'
import { put } from './catalog.ts'
import { type ConformanceCase, conflicts, equal, type Harness, ok, winners } from './harness.ts'
import { LogWriter, NOW, range, recordsOfBlocks, WHOLE_LOG } from './log-writer.ts'
import { checkRead } from './model.ts'

/** Two engines on one storage. */
export const sharedCases: readonly ConformanceCase[] = [
  {
    title: 'a resolved commit is visible to every session',
    needs: ['shared'],
    async run(harness) {
      const [first, second] = [await harness.open(), await harness.open()]
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
  },
  {
    title: 'a resolved append is visible to every session',
    needs: ['shared'],
    async run(harness) {
      const [first, second] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(first, 'a')
      equal(await second.head('a'), writer.head, 'head of a new log')
      for (let i = 0; i < 20; i++) {
        await writer.append({ count: 2 })
        equal(await second.head('a'), writer.head, 'head')
        checkRead(writer.written, WHOLE_LOG, await second.read('a', WHOLE_LOG))
      }
      await second.commit([{ kind: 'set-epoch', logId: 'a', epoch: 2 }])
      await conflicts(writer.append(), 'append in an epoch that another session ended')
      await second.commit([{ kind: 'delete-log', logId: 'a' }])
      equal(await first.head('a'), undefined, 'head of a log that another session deleted')
      equal(await first.read('a', WHOLE_LOG), [], 'blocks of a log that another session deleted')
    },
  },
  {
    title: 'one of two appends by different sessions with the same expectation succeeds',
    needs: ['shared'],
    async run(harness) {
      const sessions = [await harness.open(), await harness.open()]
      let { head } = await LogWriter.create(sessions[0]!, 'a')
      for (let round = 0; round < 30; round++) {
        // Each session is first in every other round.
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
          const records = recordsOfBlocks(await session.read('a', added)).filter(
            ({ seqNum }) => seqNum >= block.firstSeqNum,
          )
          equal(records, recordsOfBlocks([block]), 'records that were added')
        }
        head = next
      }
    },
  },
  {
    title: 'two sessions that append concurrently produce a log without gaps',
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
      const records = recordsOfBlocks(await sessions[0]!.read('a', WHOLE_LOG))
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
    title: 'one of two commits by different sessions with the same expectation succeeds completely',
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
    title: 'versions assigned by two sessions differ',
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
    title: 'blocks that one session frees are freed for all',
    needs: ['shared'],
    async run(harness) {
      const [first, second] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(first, 'a')
      await writer.append({ expiresAt: NOW })
      await writer.append()
      while ((await second.reclaim({ now: NOW, trimmedBefore: 0, blocksMax: 10 })).more) {}
      for (const session of [first, second]) {
        const records = recordsOfBlocks(await session.read('a', WHOLE_LOG))
        equal(
          records.map(({ seqNum }) => seqNum),
          [1],
          'sequence numbers',
        )
      }
    },
  },
  {
    title: 'a session is not exclusive once another one was open',
    needs: ['shared'],
    async run(harness) {
      const first = await harness.open()
      const second = await harness.open()
      equal(
        [first, second].map((session) => session.isExclusive?.() ?? false),
        [false, false],
        'with another',
      )
      await second.close()
      equal(first.isExclusive?.() ?? false, false, 'after the other was closed')
    },
  },
  {
    title: 'closing one session does not affect the others',
    needs: ['shared'],
    async run(harness) {
      const [first, second] = [await harness.open(), await harness.open()]
      const writer = await LogWriter.create(first, 'a')
      await second.close()
      await writer.append()
      await first.commit([put('a', 1)])
      equal(await first.head('a'), writer.head, 'head')
      equal((await first.get('streams', 'a'))?.value, 1, 'value')
    },
  },
]

/**
 * The cases for storages that elect an engine for background work. Without an election, every engine does
 * it.
 */
export const electionCases: readonly ConformanceCase[] = [
  {
    title: 'a session is elected for background work once those elected before withdraw',
    async run(harness) {
      for (let remaining = await openCandidates(harness, 3); remaining.length > 0; ) {
        const { elected, others } = await nextElected(remaining)
        elected.withdraw()
        remaining = others
      }
    },
  },
  {
    title: 'closing a session withdraws it',
    async run(harness) {
      for (let remaining = await openCandidates(harness, 3); remaining.length > 0; ) {
        const { elected, others } = await nextElected(remaining)
        await elected.session.close()
        remaining = others
      }
    },
  },
  {
    title: 'a session that withdrew is not elected again, and withdrawing twice does nothing',
    async run(harness) {
      const candidates = await openCandidates(harness, 3)
      if (candidates.length === 0) return
      const { elected, others } = await nextElected(candidates)
      const [waiting, last] = others
      // The second candidate may not have been elected yet.
      for (const candidate of [waiting, elected, waiting, elected]) candidate?.withdraw()
      await last?.elected()
      await last?.session.close()
      for (const candidate of [elected, waiting]) {
        candidate?.withdraw()
        await candidate?.session.close()
        ok(candidate?.wasElectedAgain !== true, 'onElected(true) was called after the session withdrew')
      }
    },
  },
]

/**
 * Opens several sessions that contend for the background work. Returns none without elections, and one if
 * only one session may be open.
 */
async function openCandidates(harness: Harness, count: number): Promise<Candidate[]> {
  const candidates: Candidate[] = []
  for (let i = 0; i < (harness.storage.manifest.shared ? count : 1); i++) {
    const session = await harness.open()
    if (session.electForBackgroundWork === undefined) return []
    candidates.push(new Candidate(session, harness.options.notificationMsMax ?? 5000))
  }
  return candidates
}

/** Waits until one is elected, whichever was opened first. */
async function nextElected(
  candidates: readonly Candidate[],
): Promise<{ elected: Candidate; others: Candidate[] }> {
  const elected = await Promise.race(candidates.map((one) => one.elected().then(() => one)))
  for (const candidate of candidates) candidate.stopWaiting()
  return { elected, others: candidates.filter((one) => one !== elected) }
}

/** A session that contends for the background work. */
class Candidate {
  readonly session: StorageSession
  readonly #timeoutMs: number
  readonly #end: () => void
  #isElected = false
  #hasWithdrawn = false
  #wasElectedAgain = false
  #onElected: () => void = () => {}

  constructor(session: StorageSession, timeoutMs: number) {
    this.session = session
    this.#timeoutMs = timeoutMs
    this.#end = session.electForBackgroundWork!((isElected) => {
      this.#isElected = isElected
      this.#wasElectedAgain ||= isElected && this.#hasWithdrawn
      if (isElected) this.#onElected()
    })
  }

  /** Whether it was elected again after it withdrew. */
  get wasElectedAgain(): boolean {
    return this.#wasElectedAgain
  }

  /** Resolves once the session is elected. */
  elected(): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error(`onElected(true) was not called within ${this.#timeoutMs} ms`))
      const timer = setTimeout(fail, this.#timeoutMs)
      this.stopWaiting = () => clearTimeout(timer)
      this.#onElected = () => {
        this.stopWaiting()
        resolve()
      }
      if (this.#isElected) this.#onElected()
    })
  }

  /** Stops waiting and cancels the timer. */
  stopWaiting = (): void => {}

  withdraw(): void {
    this.#hasWithdrawn = true
    this.#end()
  }
}
