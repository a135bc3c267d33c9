import { afterEach, describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type FaultyStorageOptions, faultyStorage, virtualClock } from '../../adapters/testing/index.ts'
import { type Headwater, HeadwaterError, open, type Stream } from '../../src/index.ts'

const opened: Headwater[] = []

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
  for await (const batch of stream.read({ seqNum: 0, count: seqNum }))
    all.push(...batch.text.map(({ body }) => body))
  return all
}

describe('an engine on a storage', () => {
  test('that has no space left tells so, and appends when there is some again', async () => {
    const { storage, stream } = await start()
    storage.failNext('append', { kind: 'quota' })
    const refused = stream.append('lost')
    await expect(refused).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining('quota'),
    })
    await stream.append('kept')
    expect(await bodies(stream)).toEqual(['kept'])
  })

  test('that loses an answer leaves it to the caller, who can tell by the sequence number', async () => {
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

  test('that is late acknowledges late, and shows nothing before', async () => {
    const { storage, stream, clock } = await start()
    storage.delay('append', '2s', { nth: 1 })
    let isDurable = false
    const ack = stream.append('slow').then(() => {
      isDurable = true
    })
    await clock.advance(1999)
    expect(isDurable).toBe(false)
    expect(await stream.checkTail()).toMatchObject({ seqNum: 0 })
    await clock.advance(1)
    await ack
  })

  test('that tears every read reads all, in order', async () => {
    const { storage, stream } = await start()
    for (let i = 0; i < 20; i++) await stream.append([`${i}a`, `${i}b`])
    storage.tearReads()
    expect(await bodies(stream)).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}a`, `${i}b`]).flat())
    expect(storage.log.length).toBeGreaterThan(15)
  })

  test('that tells nothing of other engines finds what they append within five seconds', async () => {
    const { storage, stream, clock, engine } = await start()
    const other = await engine()
    const seen: string[] = []
    stream.read({ seqNum: 0 }).text$.subscribe({ next: ({ body }) => void seen.push(body), error: () => {} })
    await clock.settle()
    storage.dropNotifications()
    await other.stream.append('from elsewhere')
    await clock.advance('4s')
    expect(seen).toEqual([])
    await clock.advance('1s')
    expect(seen).toEqual(['from elsewhere'])
  })

  test('that tells everything twice, and late, shows each record once', async () => {
    const { storage, stream, clock, engine } = await start()
    const other = await engine()
    const seen: string[] = []
    stream.read({ seqNum: 0 }).text$.subscribe({ next: ({ body }) => void seen.push(body), error: () => {} })
    await clock.settle()
    storage.duplicateNotifications()
    storage.delayNotifications('1s')
    for (let i = 0; i < 5; i++) await other.stream.append(`${i}`)
    await clock.advance('2s')
    expect(seen).toEqual(['0', '1', '2', '3', '4'])
  })

  test('that loses its connection fails until it is restored; followers go on behind', async () => {
    const { storage, stream, clock, engine } = await start()
    const other = await engine()
    const seen: string[] = []
    stream.read({ seqNum: 0 }).text$.subscribe({ next: ({ body }) => void seen.push(body), error: () => {} })
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
    expect(seen).toEqual(['before', 'in flight', 'after'])
  })

  test('without a connection closes', async () => {
    const { storage, stream, hw, clock } = await start()
    await stream.append('kept')
    storage.loseConnection()
    await hw.close()
    expect(clock.pending).toBe(0)
  })

  test('that crashes has what was acknowledged when it is opened again', async () => {
    const { storage, stream, hw, clock, engine } = await start()
    await stream.append('acknowledged')
    storage.delay('append', '1h')
    const inFlight = codeOf(stream.append('in flight'))
    await clock.settle()
    await storage.crash()
    expect(await inFlight).toMatch(/storage|unavailable/)
    expect(await codeOf(stream.append('too late'))).toMatch(/storage|unavailable/)
    storage.heal()
    const again = await engine()
    expect(await bodies(again.stream)).toEqual(['acknowledged'])
    await hw.close()
    await again.hw.close()
    expect(clock.pending).toBe(0)
  })
})

/** Appends numbers, each until it is there once; resolves to what a seed made of it. */
async function campaign(seed: number) {
  const { storage, stream, clock, hw } = await start({ seed })
  const delay = [0, 50] as const
  storage.rates = {
    append: { before: 0.1, after: 0.1, delay },
    head: { before: 0.1, delay },
    read: { before: 0.1, torn: 0.5, delay },
    notification: { drop: 0.2, duplicate: 0.2, delay },
  }
  const attempts: string[] = []
  const appended = (async () => {
    for (let i = 0; i < 60; ) {
      const code = await codeOf(stream.append(`${i}`, { matchSeqNum: i }))
      attempts.push(String(code))
      if (code === 'done' || code === 'seq_num_mismatch') i++
      else expect(code).toBe('storage')
    }
  })()
  let isOver = false
  void appended.finally(() => {
    isOver = true
  })
  while (!isOver) await clock.advance('1s')
  await appended
  const { log } = storage
  storage.heal()
  const kept = await bodies(stream)
  await hw.close()
  return { log, attempts, kept, timers: clock.pending }
}

describe('an engine on a storage with faults by chance', () => {
  test.each([1, 2, 3])('loses and repeats nothing (seed %i)', async (seed) => {
    const { kept, attempts, timers, log } = await campaign(seed)
    expect(kept).toEqual(Array.from({ length: 60 }, (_, i) => `${i}`))
    expect(new Set(attempts)).toEqual(new Set(['done', 'storage', 'seq_num_mismatch']))
    expect(log.length).toBeGreaterThan(50)
    expect(timers).toBe(0)
  })

  test('meets the same with the same seed', async () => {
    const [one, again] = [await campaign(4), await campaign(4)]
    expect(again).toEqual(one)
  })
})
