import { describe, expect, it } from 'vitest'
import { HeadwaterError, open, StorageFailure, type StorageSession } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { gated } from '../gated-storage.ts'
import { bodies, openEngine } from '../support.ts'
import { wrapped } from '../wrapped-storage.ts'

const codeOf = (error: unknown) => (HeadwaterError.is(error) ? error.code : String(error))

describe('background', () => {
  it('delete-on-empty whose commit has an unknown outcome ends followers (one engine)', async () => {
    let failing = false
    const storage = wrapped(testStorage(), { shared: false }, (session: StorageSession) => ({
      async commit(changes) {
        await session.commit(changes)
        if (failing && changes.some(({ kind }) => kind === 'delete-log')) {
          failing = false
          throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
        }
      },
    }))
    const { hw, clock } = await openEngine({ storage })
    await hw.basin('basin').ensureStream('s', { deleteOnEmpty: { minAgeSeconds: 60 } })
    let ended: string | undefined
    hw.basin('basin', { autoCreate: false })
      .stream('s')
      .read({})
      .text$.subscribe({
        error: (e) => {
          ended = codeOf(e)
        },
      })
    await clock.settle()
    failing = true
    await clock.advance('10m')
    expect(ended).toBe('unavailable')
    await hw.close()
  })
})

describe('a session whose append has an unknown outcome', () => {
  it('acks nothing behind the append that failed', async () => {
    const storage = gated(testStorage())
    const { hw, stream } = await openEngine({ storage })
    const session = await stream.appendSession()
    let n = 0
    storage.onAppended = () => {
      if (n++ === 0) throw new StorageFailure('io', 'lost', { nothingWritten: false })
    }
    const tickets = [await session.submit('a'), await session.submit('b')]
    const results = await Promise.all(tickets.map((t) => t.ack().then(() => 'acked', codeOf)))
    // That b was stored proves that a was: either both are told so, or neither.
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    expect(results[1]).toBe(results[0])
    await hw.close()
  })
})

describe('the budget of an engine', () => {
  it('an append that waits for it when the engine closes is refused, and nothing is left', async () => {
    const storage = gated(testStorage())
    const clock = testClock({ now: 1_000_000 })
    const hw = await open({ storage, clock, limits: { appendInFlightBytes: 1_048_576 } })
    const stream = hw.basin('basin').stream('s')
    await stream.append('x')
    storage.holding = true
    const body = new Uint8Array(700_000)
    const results = [
      stream.append(body),
      stream.append(body),
      hw.basin('basin').stream('t').append(body),
    ].map((p) => p.then(() => 'acked', codeOf))
    await clock.settle()
    const closing = hw.close()
    await clock.settle()
    storage.holding = false
    storage.release()
    expect(await Promise.all(results)).toEqual(['acked', 'unavailable', 'unavailable'])
    await closing
    expect(hw.stats()).toMatchObject({ appendBytesInFlight: 0, waitingAppends: 0, pendingAppends: 0 })
    expect(clock.pending).toBe(0)
  })
})
