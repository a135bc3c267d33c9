import { afterEach, describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type FaultyStorageOptions, faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import { type Engine, HeadwaterError, open, type Stream } from '../../src/index.ts'

const opened: Engine[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((hw) => hw.close()))
})

async function start(options: FaultyStorageOptions = {}) {
  const storage = faultyStorage(memory(), options)
  const clock = virtualClock()
  const engine = async () => {
    const hw = await open({ storage, clock })
    opened.push(hw)
    return { hw, stream: hw.basin('shop').stream('orders') }
  }
  const first = await engine()
  await first.hw.ensureBasin('shop')
  await first.hw.basin('shop').ensureStream('orders')
  return { storage, clock, engine, ...first }
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'done',
    (error: unknown) => (HeadwaterError.is(error) ? error.code : error),
  )

async function bodies(stream: Stream): Promise<string[]> {
  const { seqNum } = await stream.checkTail()
  const all: string[] = []
  for await (const batch of stream.read({ seqNum: 0, count: seqNum }).batches())
    all.push(...batch.records.map(({ body }) => body))
  return all
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
    expect(await bodies(stream)).toEqual(['once'])
  })

  test('reads everything in order if every read is torn', async () => {
    const { storage, stream } = await start()
    for (let i = 0; i < 20; i++) await stream.append([`${i}a`, `${i}b`])
    storage.tearReads()
    expect(await bodies(stream)).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`]).flat())
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
    const inFlight = codeOf(other.stream.append('in flight'))
    await clock.settle()
    storage.loseConnection()
    expect(await inFlight).toBe('storage')
    expect(await codeOf(other.stream.append('refused'))).toBe('storage')
    expect(await codeOf(other.hw.checkStorage())).toBe('storage')
    storage.restore()
    await other.stream.append('after')
    await clock.advance('1s')
    expect(received).toEqual(['before', 'in flight', 'after'])
  })

  test('finds everything acknowledged when it is opened again after a crash', async () => {
    const { storage, stream, hw, clock, engine } = await start()
    await stream.append('acknowledged')
    storage.delay('append', '1h')
    const inFlight = codeOf(stream.append('in flight'))
    await clock.settle()
    await storage.crash()
    expect(await inFlight).toMatch(/storage|closed/)
    expect(await codeOf(stream.append('too late'))).toMatch(/storage|closed/)
    storage.heal()
    const reopened = await engine()
    expect(await bodies(reopened.stream)).toEqual(['acknowledged'])
    await hw.close()
    await reopened.hw.close()
    expect(clock.pending).toBe(0)
  })
})
