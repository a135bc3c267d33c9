import { describe, expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { outcomeOf, readAll } from '../support/index.ts'

async function start() {
  const storage = faultyStorage(memory())
  const clock = virtualClock()
  const engine = async () => {
    const hw = await open({ storage, clock })
    onTestFinished(() => hw.close())
    return { hw, stream: hw.basin('shop').stream('orders') }
  }
  const first = await engine()
  await first.hw.ensureBasin('shop')
  await first.hw.basin('shop').ensureStream('orders')
  return { storage, clock, engine, ...first }
}

describe('an engine on a faulty storage', () => {
  test('leaves a lost result to the caller, which can check the sequence number', async () => {
    const { storage, stream } = await start()
    storage.failNext('append', { after: true })
    await expect(stream.append('once', { matchSeqNum: 0 })).rejects.toMatchObject({
      code: 'storage',
      mayHaveEffects: true,
    })
    await expect(stream.append('once', { matchSeqNum: 0 })).rejects.toMatchObject({
      code: 'seq_num_mismatch',
      seqNum: 1,
    })
    expect(await readAll(stream)).toEqual(['once'])
  })

  test('reads everything in order if every read is torn', async () => {
    const { storage, stream } = await start()
    for (let i = 0; i < 20; i++) await stream.append([`${i}a`, `${i}b`])
    storage.tearReads()
    expect(await readAll(stream)).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`]).flat())
    expect(storage.log.length).toBeGreaterThan(15)
  })

  test('fails until a lost connection is restored, and then followers continue', async () => {
    const { storage, stream, clock, engine } = await start()
    const other = await engine()
    const received: string[] = []
    stream
      .follow({ seqNum: 0 })
      .records$.subscribe({ next: ({ body }) => void received.push(body), error: () => {} })
    await other.stream.append('before')
    storage.delay('append', '1s', { after: true, nth: 1 })
    const inFlight = outcomeOf(other.stream.append('in flight'))
    await clock.settle()
    storage.loseConnection()
    expect(await inFlight).toBe('storage')
    expect(await outcomeOf(other.stream.append('refused'))).toBe('storage')
    expect(await outcomeOf(other.hw.checkStorage())).toBe('storage')
    storage.restore()
    await other.stream.append('after')
    await clock.advance('1s')
    expect(received).toEqual(['before', 'in flight', 'after'])
  })

  test('finds everything acknowledged when it is opened again after a crash', async () => {
    const { storage, stream, hw, clock, engine } = await start()
    await stream.append('acknowledged')
    storage.delay('append', '1h')
    const inFlight = outcomeOf(stream.append('in flight'))
    await clock.settle()
    await storage.crash()
    expect(await inFlight).toMatch(/storage|closed/)
    expect(await outcomeOf(stream.append('too late'))).toMatch(/storage|closed/)
    storage.heal()
    const reopened = await engine()
    expect(await readAll(reopened.stream)).toEqual(['acknowledged'])
    await hw.close()
    await reopened.hw.close()
    expect(clock.pending).toBe(0)
  })
})
