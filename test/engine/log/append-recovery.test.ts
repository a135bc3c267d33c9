import { describe, expect, it } from 'vitest'
import { open } from '../../../src/index.ts'
import { decodeRecords } from '../../../src/storage/block-codec.ts'
import type { AppendRequest, StorageContext } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  bodies,
  codeOf,
  gated,
  openEngine,
  outcomeOf,
  readAll,
  testClock,
  testStorage,
  wrapped,
} from '../../support/index.ts'

const text = (request: AppendRequest) =>
  decodeRecords(request.blocks[0]!.data)
    .map(({ body }) => new TextDecoder().decode(body))
    .join()

describe('append recovery', () => {
  it('never stores a durable append twice between a pending rejection and a storage failure', async () => {
    const storage = gated(testStorage(), { shared: false })
    const { stream } = await openEngine({ storage })
    await stream.append('0')
    storage.holding = true
    storage.onAppend = (request) => {
      if (text(request) === 'd') throw new StorageFailure('io', 'disk', { nothingWritten: true })
    }
    const results = [
      outcomeOf(stream.append('a')),
      outcomeOf(stream.append('refused', { matchSeqNum: 99 })),
      outcomeOf(stream.append('c')),
      outcomeOf(stream.append('d')),
    ]
    storage.holding = false
    storage.release()
    expect({ results: await Promise.all(results), stored: await readAll(stream) }).toEqual({
      results: ['ok', 'seq_num_mismatch', 'ok', 'storage'],
      stored: ['0', 'a', 'c'],
    })
  })

  it('fails appends without effects if the head cannot be read again', async () => {
    const storage = gated(testStorage(), { shared: true })
    const { stream } = await openEngine({ storage })
    const options = { producer: { id: 'p', epoch: 0, seq: 0 } }
    await stream.append('0', options)
    storage.onHead = () => {
      throw new StorageFailure('io', 'disk', { nothingWritten: false })
    }
    const error = await stream.append('0', options).catch((error) => error)
    expect(error).toMatchObject({ code: 'storage', mayHaveEffects: false })
  })

  it('never retries an append of unknown outcome after a pending rejection', async () => {
    const storage = gated(testStorage(), { shared: false })
    const { stream } = await openEngine({ storage })
    await stream.append('0')
    storage.holding = true
    let failed = false
    storage.onAppended = (request) => {
      if (text(request) !== 'c' || failed) return
      failed = true
      throw new StorageFailure('io', 'no answer', { nothingWritten: false })
    }
    const results = [
      outcomeOf(stream.append('a')),
      outcomeOf(stream.append('refused', { matchSeqNum: 99 })),
      outcomeOf(stream.append('c')),
    ]
    storage.holding = false
    storage.release()
    expect({ results: await Promise.all(results), stored: await readAll(stream) }).toEqual({
      results: ['ok', 'seq_num_mismatch', 'storage'],
      stored: ['0', 'a', 'c'],
    })
  })

  describe('when a write of unknown outcome takes effect late', () => {
    /** The write of `lost` fails, and takes effect just before that of `y`. */
    function late(lost: string) {
      let write: (() => Promise<void>) | undefined
      return wrapped(testStorage(), {}, (session) => ({
        append: async (request: AppendRequest) => {
          if (text(request) === lost && write === undefined) {
            write = () => session.append(request)
            throw new StorageFailure('io', 'connection lost', { nothingWritten: false })
          }
          if (text(request) === 'y') await write?.().catch(() => {})
          return session.append(request)
        },
      }))
    }

    it('keeps the order, without duplicates', async () => {
      const { stream } = await openEngine({ storage: late('x') })
      expect(await outcomeOf(stream.append('x'))).toBe('storage')
      const results = [outcomeOf(stream.append('y')), outcomeOf(stream.append('z'))]
      expect(await Promise.all(results)).toEqual(['ok', 'ok'])
      expect(await readAll(stream)).toEqual(['x', 'y', 'z'])
    })

    it('keeps the fencing token', async () => {
      const { stream } = await openEngine({ storage: late('owner') })
      expect(await outcomeOf(stream.fence('owner'))).toBe('storage')
      await Promise.all([outcomeOf(stream.append('y')), outcomeOf(stream.append('z'))])
      // The fence command is in the stream, so the stream is fenced.
      expect((await readAll(stream))[0]).toBe('owner')
      expect(await outcomeOf(stream.append('w', { fencingToken: 'owner' }))).toBe('ok')
    })
  })

  it('does not reject an append because of a head that was read before the call', async () => {
    const storage = testStorage()
    let holds = false
    let release = () => {}
    let tellHeld = () => {}
    const isHeld = new Promise<void>((resolve) => {
      tellHeld = resolve
    })
    const slow = wrapped(storage, { shared: true, notifications: 'hint' }, (session) => ({
      async head(logId) {
        const head = await session.head(logId)
        if (!holds) return head
        holds = false
        tellHeld()
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return head
      },
    }))
    const clock = testClock()
    // This engine gets no notifications of the other one.
    const unaware = {
      ...slow,
      open: (context: StorageContext) => slow.open({ ...context, onLogChanged: () => {} }),
    }
    const engines = [await open({ storage: unaware, clock }), await open({ storage, clock })]
    const [here, elsewhere] = engines.map((engine) => engine.basin('basin').stream('stream'))
    await here!.append('a')
    holds = true
    const refused = outcomeOf(here!.append('b', { matchSeqNum: 99 }))
    await isHeld
    await elsewhere!.append('c')
    const matching = outcomeOf(here!.append('d', { matchSeqNum: 2 }))
    release()
    expect(await Promise.all([refused, matching])).toEqual(['seq_num_mismatch', 'ok'])
    expect(await readAll(here!)).toEqual(['a', 'c', 'd'])
    for (const engine of engines) await engine.close()
  })
})

describe('a rejection on a busy shared stream', () => {
  it('is reported, however fast another engine appends', async () => {
    const data = testStorage()
    const clock = testClock({ now: 1_000_000 })
    let rivalling = false
    let rivals = 0
    const rival = await open({ storage: data, clock })
    await rival.ensureBasin('basin')
    await rival.basin('basin').ensureStream('s')
    const busy = wrapped(data, {}, (session) => ({
      async head(logId) {
        // The rival appends while the head is read.
        if (rivalling && rivals < 500) {
          rivals++
          await rival.basin('basin').stream('s').append('r')
        }
        return session.head(logId)
      },
    }))
    const hw = await open({ storage: busy, clock })
    const stream = hw.basin('basin').stream('s')
    await stream.append('a')
    rivalling = true
    const result = await stream.append('b', { matchSeqNum: 0 }).then(() => 'appended', codeOf)
    rivalling = false
    expect(result).toBe('seq_num_mismatch')
    expect(rivals).toBeLessThan(200)
    await hw.close()
    await rival.close()
  })
})

describe('a session whose append has an unknown outcome', () => {
  it('acknowledges nothing after the failed append', async () => {
    const storage = gated(testStorage())
    const { stream } = await openEngine({ storage })
    const session = await stream.appendSession()
    let n = 0
    storage.onAppended = () => {
      if (n++ === 0) throw new StorageFailure('io', 'lost', { nothingWritten: false })
    }
    const tickets = await Promise.all([session.submit('a'), session.submit('b')])
    const results = await Promise.all(tickets.map((t) => t.ack().then(() => 'acked', codeOf)))
    // That b was stored proves that a was: either both are acknowledged, or neither.
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    expect(results[1]).toBe(results[0])
  })
})
