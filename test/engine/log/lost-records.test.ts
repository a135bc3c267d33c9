import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, open, type Storage } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { bodies, codeOf, outcomeOf, readAll, testClock } from '../../support/index.ts'

/** Two copies of one storage, of which the second lags behind once the first is no longer copied. */
function replicatedStorage() {
  const [primary, replica] = [memory(), memory()]
  let isCopied = true
  let isPromoted = false
  const contexts: (() => void)[] = []
  const storage: Storage = {
    manifest: primary.manifest,
    async open(context) {
      const [first, second] = [await primary.open(context), await replica.open(context)]
      contexts.push(() => context.onHistoryChanged?.())
      const current = () => (isPromoted ? second : first)
      const written = async <Result>(
        write: (session: StorageSession) => Promise<Result>,
      ): Promise<Result> => {
        const result = await write(current())
        if (isCopied) await write(second)
        return result
      }
      return {
        get: (...args) => current().get(...args),
        list: (...args) => current().list(...args),
        commit: (changes) => written((session) => session.commit(changes)),
        head: (logId) => current().head(logId),
        append: (request) => written((session) => session.append(request)),
        read: (...args) => current().read(...args),
        reclaim: (limits) => written((session) => session.reclaim(limits)),
        measure: (...args) => current().measure(...args),
        close: async () => {
          await first.close()
          await second.close()
        },
      }
    },
  }
  return {
    storage,
    /** Lets the replica get nothing more. */
    cut() {
      isCopied = false
    },
    promote() {
      isPromoted = true
    },
    reportPromotion() {
      for (const report of contexts) report()
    },
  }
}

async function opened(storage: Storage) {
  const errors: unknown[] = []
  const clock = testClock()
  const hw = await open({ storage, clock, onBackgroundError: (error) => errors.push(error) })
  onTestFinished(() => hw.close())
  return { hw, clock, errors, stream: hw.basin('basin').stream('stream') }
}

/** What a follower receives, then `end` or the code of its error. */
function followed(hw: Engine): string[] {
  const received: string[] = []
  const follow = async () => {
    for await (const { body } of hw.basin('basin').stream('stream').follow({ seqNum: 0 })) received.push(body)
    return 'end'
  }
  void follow()
    .catch(codeOf)
    .then((end) => received.push(end))
  return received
}

describe('a storage that loses confirmed records', () => {
  it.each([
    ['fewer records than before', 0],
    ['as many as before', 1],
  ])('ends followers and sessions if the stream has %s', async (_, later) => {
    const replicated = replicatedStorage()
    const { hw, clock, errors, stream } = await opened(replicated.storage)
    await stream.append('kept')
    const session = await stream.appendSession()
    const received = followed(hw)
    await clock.settle()
    replicated.cut()
    await (await session.submit('lost')).ack()
    await clock.settle()
    expect(received).toEqual(['kept', 'lost'])
    replicated.promote()
    // Another engine, which does not know what was lost.
    const other = await opened(replicated.storage)
    for (let i = 0; i < later; i++) await other.stream.append('other')
    replicated.reportPromotion()
    await clock.settle()
    expect(received).toEqual(['kept', 'lost', 'storage'])
    expect(await outcomeOf((await session.submit('next')).ack())).toBe('storage')
    expect(errors.map(String)).toEqual([
      'HeadwaterError: stream `stream` in basin `basin`: the storage has lost records before 2 that it had confirmed; read them again',
    ])
    expect(hw.stats().lostTails).toBe(1)
    await stream.append('new')
    expect(await readAll(stream)).toEqual(['kept', ...Array(later).fill('other'), 'new'])
  })

  it('ends a reader that has delivered lost records and lags behind, before it delivers others', async () => {
    const replicated = replicatedStorage()
    const { hw, clock, stream } = await opened(replicated.storage)
    await stream.append('kept')
    replicated.cut()
    for (let i = 0; i < 3; i++) await stream.append('x'.repeat(1_000_000))
    const reader = (await hw.basin('basin').stream('stream').openCursor({ seqNum: 0 }, {}))!
    expect((await reader.next())?.kind).toBe('batch')
    replicated.promote()
    replicated.reportPromotion()
    const next = Promise.resolve(reader.next())
    expect(await outcomeOf(next)).toBe('storage')
    await clock.settle()
  })

  it('notices it where nothing reports it', async () => {
    const replicated = replicatedStorage()
    const { hw, stream } = await opened(replicated.storage)
    await stream.append('kept')
    replicated.cut()
    await stream.append('lost')
    replicated.promote()
    expect((await stream.checkTail()).seqNum).toBe(1)
    expect(hw.stats().lostTails).toBe(1)
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['kept'])
  })

  it('stores a lost batch of a producer again, where nothing reports it', async () => {
    const replicated = replicatedStorage()
    const { stream } = await opened(replicated.storage)
    const batch = (seq: number) => ({ producer: { id: 'p', epoch: 0, seq } })
    await stream.append('kept', batch(0))
    replicated.cut()
    await stream.append('lost', batch(1))
    replicated.promote()
    const again = await stream.append('lost', batch(1))
    expect(again.duplicate).toBeUndefined()
    expect(await readAll(stream)).toEqual(['kept', 'lost'])
    expect((await stream.append('lost', batch(1))).duplicate).toBe(true)
  })

  it('loses nothing if the replica has everything: followers continue', async () => {
    const replicated = replicatedStorage()
    const { hw, clock, stream } = await opened(replicated.storage)
    await stream.append('kept')
    const received = followed(hw)
    await clock.settle()
    replicated.promote()
    replicated.cut()
    replicated.reportPromotion()
    await stream.append('next')
    await clock.settle()
    expect(received).toEqual(['kept', 'next'])
    expect(hw.stats().lostTails).toBe(0)
  })
})
