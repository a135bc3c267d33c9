import { beforeEach, describe, expect, it } from 'vitest'
import { type Basin, type Engine, open } from '../../../src/index.ts'
import { openEngine, outcomeOf, readAll, testClock, testStorage, wrapped } from '../../support/index.ts'

/** Four of these may be objects. */
const CACHED = 40
const STREAMS = 36

describe('streams that were evicted from the cache', () => {
  let storage: ReturnType<typeof testStorage>
  let lookUps: number
  let changeHistory: (() => void) | undefined
  let hw: Engine
  let basin: Basin

  beforeEach(async () => {
    const inner = testStorage()
    lookUps = 0
    storage = wrapped(inner, {}, (session) => ({
      head: (...args) => {
        lookUps++
        return session.head(...args)
      },
    }))
    const opened = storage.open.bind(storage)
    storage = {
      ...storage,
      open: (context) => {
        changeHistory = context.onHistoryChanged
        return opened(context)
      },
    }
    hw = (await openEngine({ storage, limits: { cachedStreams: CACHED } })).hw
    basin = hw.basin('basin')
  })

  /** Uses all streams, each of which is evicted before its next use. */
  async function round(number: number): Promise<void> {
    for (let i = 0; i < STREAMS; i++) {
      const ack = await basin.stream(`s/${i}`).append(`${number}`, { matchSeqNum: number })
      expect(ack.end.seqNum).toBe(number + 1)
    }
  }

  it('are used again without a look-up', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    lookUps = 0
    for (let number = 3; number < 6; number++) await round(number)
    expect(lookUps).toBeLessThanOrEqual(2)
    expect(await readAll(basin.stream('s/7'))).toEqual(['0', '1', '2', '3', '4', '5'])
    await hw.close()
  })

  it('are looked up once if they were only created', async () => {
    await round(0)
    lookUps = 0
    await round(1)
    expect(lookUps).toBeGreaterThanOrEqual(STREAMS - 4)
    await hw.close()
  })

  it('keep their fencing token and their trim point', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    const stream = basin.stream('s/5')
    await stream.fence('writer')
    await stream.trim(2, { fencingToken: 'writer' })
    for (let i = 6; i < STREAMS; i++) await basin.stream(`s/${i}`).append('x')
    lookUps = 0
    expect(await outcomeOf(stream.append('x', { fencingToken: 'other' }))).toBe('fencing_token_mismatch')
    expect(await outcomeOf(stream.append('x', { fencingToken: 'writer' }))).toBe('ok')
    expect((await stream.readBatch({ seqNum: 0, clamp: true })).records[0]).toMatchObject({ body: '2' })
    await hw.close()
  })

  it('keep the trim point with which they began', async () => {
    const source = basin.stream('source')
    await source.append('trimmed')
    await source.trim(2)
    await basin.createStream('fork', {}, { fork: { stream: 'source' } })
    for (let number = 0; number < 3; number++) {
      expect((await basin.stream('fork').append(`${number}`)).end.seqNum).toBe(number + 3)
      for (let i = 0; i < 30; i++) await basin.stream(`s/${i}`).append('x')
    }
    lookUps = 0
    await basin.stream('fork').append('x', { matchSeqNum: 5 })
    expect(lookUps).toBe(0)
    const earlier = basin.createStream('again', {}, { fork: { stream: 'fork', seqNum: 1 } })
    await expect(earlier).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 2 })
    await hw.close()
  })

  it('have the configuration that they got after they were evicted', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    await basin.stream('s/3').reconfigure({ timestamping: { mode: 'client-require' } })
    for (let i = 4; i < STREAMS; i++) await basin.stream(`s/${i}`).append('x')
    expect(await outcomeOf(basin.stream('s/3').append('x'))).toBe('invalid')
    await hw.close()
  })

  it('are not found after they were deleted, and begin at 0 when they are created again', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    const stream = basin.stream('s/4')
    await stream.delete()
    expect(await outcomeOf(stream.checkTail())).toMatch(/^stream_(not_found|deletion_pending)$/)
    while ((await outcomeOf(basin.createStream('s/4'))) !== 'ok') await Promise.resolve()
    for (let i = 5; i < STREAMS; i++) await basin.stream(`s/${i}`).append('x')
    expect((await stream.append('again', { matchSeqNum: 0 })).end.seqNum).toBe(1)
    await hw.close()
  })

  it('show what another engine appended, and that it deleted and created them again', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    const other = await open({ storage, clock: testClock(), limits: { cachedStreams: CACHED } })
    const others = other.basin('basin')
    await others.stream('s/8').append('other')
    await others.stream('s/9').delete()
    await others.stream('s/9').append('new')
    await others.stream('s/10').append('first')
    expect((await basin.stream('s/8').checkTail()).seqNum).toBe(4)
    expect((await basin.stream('s/9').append('x')).end.seqNum).toBe(2)
    expect((await basin.stream('s/10').append('second')).end.seqNum).toBe(5)
    expect(await readAll(basin.stream('s/10'))).toEqual(['0', '1', '2', 'first', 'second'])
    await other.close()
    await hw.close()
  })

  it('are not taken for a stream that another engine has created in their place', async () => {
    const producer = { id: 'p', epoch: 0, seq: 0 }
    await basin.stream('s/3').append('0', { producer })
    await basin.stream('s/3').delete()
    while ((await outcomeOf(basin.createStream('s/3'))) !== 'ok') await Promise.resolve()
    await basin.stream('s/3').append('0', { producer })
    for (let i = 4; i < STREAMS; i++) await basin.stream(`s/${i}`).append('x')
    for (let i = 4; i < STREAMS; i++) await basin.stream(`s/${i}`).append('x')
    const other = await open({ storage, clock: testClock(), limits: { cachedStreams: CACHED } })
    await other.basin('basin').stream('s/3').delete()
    await other.basin('basin').ensureStream('s/3')
    expect((await basin.stream('s/3').append('new', { producer })).duplicate).toBeUndefined()
    expect(await readAll(basin.stream('s/3'))).toEqual(['new'])
    await other.close()
    await hw.close()
  })

  it('are looked up again once another engine has appended to one of them', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    const other = await open({ storage, clock: testClock() })
    await other.basin('basin').stream('s/8').append('other')
    await other.close()
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(5)
    lookUps = 0
    await basin.stream('s/9').append('x')
    expect(lookUps).toBeGreaterThan(0)
    await hw.close()
  })

  it('are forgotten when the engine is closed', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    await hw.close()
    expect(hw.stats().cachedStreams).toBe(0)
  })

  it('are looked up again if the storage may have lost appends', async () => {
    for (let number = 0; number < 3; number++) await round(number)
    lookUps = 0
    changeHistory!()
    await round(3)
    expect(lookUps).toBeGreaterThanOrEqual(STREAMS)
    await hw.close()
  })

  it('are forgotten, the oldest first, when there are more than may be cached', async () => {
    for (let number = 0; number < 3; number++) {
      for (let i = 0; i < 3 * CACHED; i++) await basin.stream(`many/${i}`).append('x')
    }
    expect(hw.stats().cachedStreams).toBeLessThanOrEqual(CACHED + 1)
    expect(hw.stats().cachedStreams).toBeGreaterThanOrEqual(CACHED / 2)
    lookUps = 0
    await basin.stream(`many/${3 * CACHED - 10}`).append('x')
    expect(lookUps).toBe(0)
    await basin.stream('many/0').append('x')
    expect(lookUps).toBe(1)
    await hw.close()
  })

  it('have names of any length and script', async () => {
    for (let number = 0; number < 3; number++) {
      for (const name of ['a', 'b', 'ab', 'ba', 'é', '\u{1f600}', 'c', 'd', 'e', 'f', 'g', 'h']) {
        expect((await basin.stream(name).append(name, { matchSeqNum: number })).end.seqNum).toBe(number + 1)
      }
    }
    await hw.close()
  })
})
