import { describe, expect, it } from 'vitest'
import type { HeadwaterError } from '../../../src/index.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { gated, onEveryKindOfStorage, openEngine, readAll, testStorage } from '../../support/index.ts'

const errorOf = (promise: Promise<unknown>): Promise<HeadwaterError> =>
  promise.then(
    () => Promise.reject(new Error('the call succeeded')),
    (error) => error,
  )

/** Fails the appends that begin at a sequence number, without writing them. */
const failAt =
  (seqNum: number, nothingWritten: boolean) =>
  ({ blocks }: AppendRequest): void => {
    if (blocks[0]!.firstSeqNum === seqNum) throw new StorageFailure('io', 'lost', { nothingWritten })
  }

onEveryKindOfStorage(() =>
  describe('an append', () => {
    it.each([
      ['whose condition does not hold', { matchSeqNum: 7 }, 'seq_num_mismatch'],
      ['that the storage failed to write', {}, 'storage'],
    ])('behind one of its session %s is discarded, without effects', async (_, conditions, code) => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage })
      const { stream, clock } = engine
      if (code === 'storage') storage.onAppend = failAt(1, false)
      const session = await stream.appendSession()
      storage.holding = true
      const submitted = [
        session.submit('first'),
        session.submit('failing', conditions),
        session.submit('behind'),
        session.submit('further behind'),
      ]
      await clock.settle()
      const tickets = await Promise.all(submitted)
      storage.holding = false
      storage.release()
      await tickets[0]!.ack()
      const failure = await errorOf(tickets[1]!.ack())
      expect(failure.code).toBe(code)
      for (const ticket of tickets.slice(2)) {
        const error = await errorOf(ticket.ack())
        expect(error).toMatchObject({ code: 'append_discarded', retryable: true, mayHaveEffects: false })
        expect(error.cause).toBe(failure)
      }
      expect(await errorOf(session.close())).toBe(failure)
      expect(await readAll(stream)).toEqual(['first'])
    })

    it('that waits for room in its session is discarded when the one in flight fails', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage, limits: { sessionInFlightBytes: 1_048_576 } })
      const session = await engine.stream.appendSession()
      storage.holding = true
      storage.onAppend = failAt(0, true)
      const ticket = await session.submit(new Uint8Array(1_000_000))
      const waiting = session.submit(new Uint8Array(1_000_000))
      await engine.clock.settle()
      storage.holding = false
      storage.release()
      const [failure, discarded] = await Promise.all([errorOf(ticket.ack()), errorOf(waiting)])
      expect(discarded).toMatchObject({ code: 'append_discarded', mayHaveEffects: false })
      expect(discarded.cause).toBe(failure)
      expect(await errorOf(session.submit('later'))).toBe(failure)
    })

    it('fails without effects behind a failed one of another caller', async () => {
      const storage = gated(testStorage())
      const engine = await openEngine({ storage })
      const { stream, clock } = engine
      storage.onAppend = failAt(0, false)
      storage.holding = true
      const failures = Promise.all([errorOf(stream.append('a')), errorOf(stream.append('b'))])
      await clock.settle()
      storage.holding = false
      storage.release()
      expect(await failures).toMatchObject([
        { code: 'storage', mayHaveEffects: true },
        { code: 'storage', mayHaveEffects: false },
      ])
    })
  }),
)

it('records of a producer behind a failed batch are discarded', async () => {
  const storage = gated(testStorage())
  const engine = await openEngine({ storage })
  storage.onAppend = failAt(0, true)
  storage.holding = true
  const producer = engine.stream.producer({ recordsMax: 1 })
  const tickets = await Promise.all(['a', 'b', 'c'].map((body) => producer.submit(body)))
  await engine.clock.settle()
  storage.holding = false
  storage.release()
  const [failure, ...behind] = await Promise.all(tickets.map((ticket) => errorOf(ticket.ack())))
  expect(failure!.code).toBe('storage')
  for (const error of behind) {
    expect(error).toMatchObject({ code: 'append_discarded', mayHaveEffects: false })
    expect(error.cause).toBe(failure)
  }
})
