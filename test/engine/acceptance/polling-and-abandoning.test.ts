import { describe, expect, it } from 'vitest'
import { HeadwaterError, open, type Storage, type StorageSession } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { bodies, openEngine, readAll } from '../support.ts'
import { wrapped } from '../wrapped-storage.ts'

// Behaviour that no test of test/engine and test/core misses when it is taken out.

const codeOf = (error: unknown) => (HeadwaterError.is(error) ? error.code : String(error))

function silent(inner: Storage, notifications: 'hint' | 'none'): Storage {
  return {
    manifest: { ...inner.manifest, notifications },
    open: (context) => inner.open({ ...context, onLogChanged: () => {} }),
  }
}

describe('a storage whose notifications get lost', () => {
  it.each([
    ['hint', '5s'],
    ['none', '1s'],
  ] as const)(
    '%s: followers get what other engines appended by polling, and the poll ends with them',
    async (notifications, poll) => {
      const data = testStorage()
      const clock = testClock({ now: 1_000_000 })
      const writer = await open({ storage: data, clock })
      await writer.ensureBasin('basin')
      await writer.basin('basin').ensureStream('s')
      const hw = await open({ storage: silent(data, notifications), clock })
      const idle = clock.pending
      const seen: string[] = []
      const following = hw
        .basin('basin')
        .stream('s')
        .read({ seqNum: 0 })
        .text$.subscribe(({ body }) => seen.push(body))
      await clock.settle()
      for (const body of ['a', 'b']) {
        await writer.basin('basin').stream('s').append(body)
        await clock.advance(poll)
      }
      expect(seen).toEqual(['a', 'b'])
      following.unsubscribe()
      await clock.advance('10s')
      expect(clock.pending).toBe(idle)
      await Promise.all([hw.close(), writer.close()])
      expect(clock.pending).toBe(0)
    },
  )
})

describe('a read that is left while it is being opened', () => {
  async function held() {
    const waiting: (() => void)[] = []
    let holding = false
    const storage = wrapped(testStorage(), { shared: true }, (session: StorageSession) => ({
      async head(logId) {
        if (holding) await new Promise<void>((go) => waiting.push(go))
        return session.head(logId)
      },
    }))
    const engine = await openEngine({ storage })
    await engine.stream.append('x')
    holding = true
    const release = () => {
      holding = false
      for (const go of waiting.splice(0)) go()
    }
    return { ...engine, release }
  }

  it('an iteration: by its signal', async () => {
    const { hw, clock, stream, release } = await held()
    const abort = new AbortController()
    const next = stream
      .read({}, { signal: abort.signal })
      [Symbol.asyncIterator]()
      .next()
      .catch(() => 'aborted')
    await clock.settle()
    abort.abort()
    expect(await next).toBe('aborted')
    release()
    await clock.settle()
    expect(hw.stats().openReads).toBe(0)
    await hw.close()
  })

  it('a long poll: by its signal', async () => {
    const { hw, clock, stream, release } = await held()
    const abort = new AbortController()
    const poll = stream.readBatch({ waitSeconds: 60 }, { signal: abort.signal }).catch(() => 'aborted')
    await clock.settle()
    abort.abort()
    expect(await poll).toBe('aborted')
    release()
    await clock.settle()
    expect(hw.stats().openReads).toBe(0)
    await hw.close()
  })
})

describe('a session in which a refusal is reconsidered', () => {
  it('appends what was behind it', async () => {
    const data = testStorage()
    const clock = testClock({ now: 1_000_000 })
    const rival = await open({ storage: data, clock })
    await rival.ensureBasin('basin')
    await rival.basin('basin').ensureStream('s')
    const hw = await open({ storage: silent(data, 'none'), clock })
    const stream = hw.basin('basin').stream('s')
    const session = await stream.appendSession()
    // This engine has not heard of it yet: it refuses at first, and then finds that it holds.
    await rival.basin('basin').stream('s').append('r')
    const tickets = await Promise.all([session.submit('a', { matchSeqNum: 1 }), session.submit('b')])
    const results = await Promise.all(
      tickets.map((ticket) => ticket.ack().then(({ start }) => start.seqNum, codeOf)),
    )
    expect({ results, stored: await readAll(stream) }).toEqual({ results: [1, 2], stored: ['r', 'a', 'b'] })
    expect(bodies(await stream.readBatch({ seqNum: 2 }))).toEqual(['b'])
    await Promise.all([hw.close(), rival.close()])
  })
})
