import { describe, expect, it } from 'vitest'
import { testStorage } from '../../test-storage.ts'
import { gated } from '../gated-storage.ts'
import { openEngine, readAll } from '../support.ts'

describe('sessions and producers', () => {
  it('acks$ of an append session ends when the engine is closed', async () => {
    const { hw, clock, stream } = await openEngine()
    const session = await stream.appendSession()
    let ended: unknown
    session.acks$.subscribe({ error: (error) => (ended = error.code), complete: () => (ended = 'complete') })
    await (await session.submit('a')).ack()
    await hw.close()
    await clock.settle()
    expect(ended).toBe('unavailable')
  })

  it('closing the engine leaves no linger timer', async () => {
    const { hw, clock, stream } = await openEngine()
    const producer = stream.producer({ lingerMs: 60_000 })
    await producer.submit('a')
    await hw.close()
    expect(clock.pending).toBe(0)
  })

  it('a producer holds back its writer also when records do not fill batches exactly', async () => {
    const storage = gated(testStorage())
    const { clock, stream } = await openEngine({
      storage,
      limits: { sessionInFlightBytes: 1_048_576, appendInFlightBytes: 1_048_576 },
    })
    const producer = stream.producer({ lingerMs: 60_000 })
    await producer.submit('first')
    await producer.flush()
    storage.holding = true
    let taken = 0
    const write = async () => {
      for (let i = 0; i < 50; i++) {
        await producer.submit(new Uint8Array(600_000))
        taken++
      }
    }
    const writing = write()
    await clock.settle()
    const inMemory = taken
    storage.holding = false
    while (storage.held > 0) {
      storage.release()
      await clock.settle()
    }
    await writing
    await producer.close()
    expect(inMemory).toBeLessThan(10)
  })

  it('a record that a producer has taken in is safe from changes of its buffer', async () => {
    const { stream } = await openEngine()
    const producer = stream.producer()
    const buffer = new Uint8Array(1)
    for (const letter of ['a', 'b', 'c']) {
      buffer[0] = letter.charCodeAt(0)
      await producer.submit(buffer)
    }
    await producer.close()
    expect(await readAll(stream)).toEqual(['a', 'b', 'c'])
  })

  it('submit after the failure tells the failure, not that the session is closed', async () => {
    const codes = new Set<string>()
    for (let offset = 0; offset < 40; offset++) {
      const { hw, stream } = await openEngine()
      const session = await stream.appendSession()
      await (await session.submit('a')).ack()
      const refused = session.submit('x', { matchSeqNum: 7 })
      refused.then((ticket) => ticket.ack()).catch(() => {})
      for (let i = 0; i < offset; i++) await null
      const late = await session.submit('y').then(
        (ticket) => ticket.ack().catch((error) => `${error.code}`),
        (error) => `submit: ${error.code}: ${error.message}`,
      )
      codes.add(String(late))
      await hw.close()
    }
    expect([...codes].filter((code) => code.includes('append session is closed'))).toEqual([])
  })
})
