import { afterEach, describe, expect, it } from 'vitest'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { onEveryKindOfStorage, outcomeOf, readAll, testClock, testStorage } from '../support/index.ts'
import { EVERYTHING } from './access/support.ts'

let reopened: Engine | undefined
afterEach(async () => {
  await reopened?.close()
  reopened = undefined
})

interface Setup {
  readonly storage: Storage
  readonly hw: Engine
  readonly token: string
}

/** A basin with a stream that the engine under test has never used. */
async function setUp(wrap: (storage: Storage) => Storage = (storage) => storage): Promise<Setup> {
  const storage = testStorage()
  const clock = testClock()
  const first = await open({ storage, clock })
  await first.ensureBasin('basin')
  await first.basin('basin').ensureStream('unused')
  const token = await first.issueAccessToken({ id: 'holder', scope: EVERYTHING })
  await first.close()
  return { storage, token, hw: await open({ storage: wrap(storage), clock }) }
}

async function reopen({ storage }: Setup): Promise<Engine> {
  reopened = await open({ storage, clock: testClock() })
  return reopened
}

onEveryKindOfStorage(() =>
  describe('close waits for', () => {
    it.each([
      ['the owner', (hw: Engine) => hw],
      ['the holder of a token', (hw: Engine, token: string) => hw.as(token)],
    ])('appends to streams that were not used before, by %s', async (_, callerOf) => {
      const setup = await setUp()
      const basin = callerOf(setup.hw, setup.token).basin('basin', { autoCreate: true })
      const calls = [
        basin.stream('unused').append('a'),
        basin.stream('unused').append('b'),
        basin.stream('new').append('c'),
        basin.stream('unused').fence('token'),
      ]
      await setup.hw.close()
      expect(await Promise.all(calls.map(outcomeOf))).toEqual(['ok', 'ok', 'ok', 'ok'])
      const hw = await reopen(setup)
      expect((await readAll(hw.basin('basin').stream('unused'))).slice(0, 2)).toEqual(['a', 'b'])
      expect(await readAll(hw.basin('basin').stream('new'))).toEqual(['c'])
    })

    it.each([
      ['the owner', (hw: Engine) => hw],
      ['the holder of a token', (hw: Engine, token: string) => hw.as(token)],
    ])('creations, reconfigurations, deletions and token calls of %s', async (_, callerOf) => {
      const setup = await setUp()
      const caller = callerOf(setup.hw, setup.token)
      const calls = {
        createBasin: caller.createBasin('created'),
        ensureBasin: caller.ensureBasin('ensured'),
        reconfigureBasin: caller.basin('basin').reconfigure({ createStreamOnAppend: true }),
        createStream: caller.basin('basin').createStream('created'),
        ensureStream: caller.basin('basin').ensureStream('ensured'),
        reconfigureStream: caller.basin('basin').stream('unused').reconfigure({ storageClass: 'standard' }),
        issueAccessToken: caller.issueAccessToken({ id: 'issued', scope: EVERYTHING }),
        setDefaultLocation: caller.setDefaultLocation('aws:us-east-1'),
        listBasins: caller.listBasins(),
      }
      await setup.hw.close()
      const outcomes = Object.entries(calls).map(async ([name, call]) => [name, await outcomeOf(call)])
      expect(await Promise.all(outcomes)).toEqual(Object.keys(calls).map((name) => [name, 'ok']))
      const hw = await reopen(setup)
      expect((await hw.listBasins()).items.map(({ name }) => name)).toEqual(['basin', 'created', 'ensured'])
      expect((await hw.basin('basin').listStreams()).items.map(({ name }) => name)).toEqual([
        'created',
        'ensured',
        'unused',
      ])
      expect((await hw.listAccessTokens()).items.map(({ id }) => id)).toEqual(['holder', 'issued'])
    })

    it('a deletion, a revocation, a root token and a restored stream', async () => {
      const setup = await setUp()
      const { hw } = setup
      const calls = [
        hw.basin('basin').stream('unused').delete(),
        hw.revokeAccessToken('holder'),
        hw.createRootToken(),
        hw.restoreStream({ basin: 'basin', stream: 'restored' }, { start: { seqNum: 7, timestamp: 0 } }),
      ]
      await hw.close()
      expect(await Promise.all(calls.map(outcomeOf))).toEqual(['ok', 'ok', 'ok', 'ok'])
      const again = await reopen(setup)
      expect((await again.basin('basin').listStreams()).items.map(({ name }) => name)).toEqual(['restored'])
      expect((await again.listAccessTokens()).items).toEqual([])
      expect(await again.createRootToken()).toBeUndefined()
    })

    it('batches that a session has accepted, and ends the session', async () => {
      const setup = await setUp()
      const session = await setup.hw.basin('basin').stream('unused').appendSession()
      const submitted = ['a', 'b'].map((body) => session.submit(body))
      const closing = setup.hw.close()
      expect(await outcomeOf(session.submit('late'))).toBe('closed')
      await closing
      const acks = submitted.map(async (ticket) => outcomeOf((await ticket).ack()))
      expect(await Promise.all(acks)).toEqual(['ok', 'ok'])
      expect(await readAll((await reopen(setup)).basin('basin').stream('unused'))).toEqual(['a', 'b'])
    })

    it.each([
      ['the owner', (hw: Engine) => hw],
      ['the holder of a token', (hw: Engine, token: string) => hw.as(token)],
    ])('records that a producer of %s has collected', async (_, callerOf) => {
      const setup = await setUp()
      const stream = callerOf(setup.hw, setup.token).basin('basin').stream('unused')
      const producer = stream.producer({ lingerMs: 60_000 })
      const tickets = await Promise.all([producer.submit('a'), producer.submit('b')])
      const closing = setup.hw.close()
      expect(await outcomeOf(producer.submit('late'))).toBe('closed')
      await closing
      expect(await Promise.all(tickets.map((ticket) => outcomeOf(ticket.ack())))).toEqual(['ok', 'ok'])
      expect(await outcomeOf(producer.close())).toBe('ok')
      expect(setup.hw.stats()).toMatchObject({ openSessions: 0, pendingAppends: 0, appendBytesInFlight: 0 })
      expect(await readAll((await reopen(setup)).basin('basin').stream('unused'))).toEqual(['a', 'b'])
    })
  }),
)

it('close rejects calls that are made after it', async () => {
  const { hw, token } = await setUp()
  const holder = hw.as(token)
  const closing = hw.close()
  const stream = hw.basin('basin').stream('unused')
  const calls = [
    stream.append('late'),
    holder.basin('basin').stream('unused').append('late'),
    stream.appendSession(),
    stream.readBatch({ seqNum: 0 }),
    stream.checkTail(),
    hw.createBasin('late'),
    holder.createBasin('late'),
    hw.issueAccessToken({ id: 'late', scope: EVERYTHING }),
    hw.createRootToken(),
    hw.restoreStream({ basin: 'basin', stream: 'late' }, { start: { seqNum: 0, timestamp: 0 } }),
  ]
  expect(await Promise.all(calls.map(outcomeOf))).toEqual(calls.map(() => 'closed'))
  await closing
})
