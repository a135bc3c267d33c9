import { describe, expect, it } from 'vitest'
import { HeadwaterError, open, StorageFailure, type StorageSession } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { wrapped } from '../wrapped-storage.ts'

const codeOf = (error: unknown) => (HeadwaterError.is(error) ? error.code : String(error))

describe('streams at hand', () => {
  for (const shared of [true, false]) {
    it(`one object per log, though many streams are opened at once (shared: ${shared})`, async () => {
      const storage = wrapped(testStorage(), { shared }, () => ({}))
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage, clock, limits: { cachedStreams: 1 } })
      const names = ['a', 'b', 'c', 'd']
      const basin = hw.basin('basin')
      for (const name of names)
        await basin.ensureStream(name).catch(async () => {
          await hw.ensureBasin('basin')
          await basin.ensureStream(name)
        })
      const sessions = await Promise.all(names.map((name) => basin.stream(name).appendSession()))
      const seen: string[] = []
      const follower = basin
        .stream('a')
        .read({ seqNum: 0 })
        .text$.subscribe((record) => seen.push(record.body))
      await clock.settle()
      const ticket = await sessions[0]!.submit('hello')
      await ticket.ack()
      await clock.settle()
      const { seqNum } = await basin.stream('a').checkTail()
      expect({ seen, seqNum }).toEqual({ seen: ['hello'], seqNum: 1 })
      follower.unsubscribe()
      await hw.close()
      expect(clock.pending).toBe(0)
    })
  }
})

describe('streams at hand, with the default limits', () => {
  it('followers get what sessions append, when 12,000 streams are opened at once', async () => {
    const storage = testStorage()
    const clock = testClock({ now: 1_000_000 })
    const names = Array.from({ length: 12_000 }, (_, i) => `s${i}`)
    const first = await open({ storage, clock })
    await first.ensureBasin('basin')
    await Promise.all(names.map((name) => first.basin('basin').ensureStream(name)))
    await first.close()
    const hw = await open({ storage, clock })
    const basin = hw.basin('basin')
    const sessions = await Promise.all(names.map((name) => basin.stream(name).appendSession()))
    const missed: string[] = []
    for (let i = 0; i < names.length; i += 300) {
      const seen: string[] = []
      const following = basin
        .stream(names[i]!)
        .read({ seqNum: 0 })
        .text$.subscribe(({ body }) => seen.push(body))
      await clock.settle()
      await (await sessions[i]!.submit('hello')).ack()
      await clock.settle()
      following.unsubscribe()
      if (seen.length !== 1) missed.push(names[i]!)
    }
    expect(missed).toEqual([])
    await hw.close()
  })
})

describe('deletion of unknown outcome', () => {
  for (const shared of [true, false]) {
    it(`ends followers and frees the name (shared: ${shared})`, async () => {
      let failing = false
      const storage = wrapped(testStorage(), { shared }, (session: StorageSession) => ({
        async commit(changes) {
          await session.commit(changes)
          if (failing) {
            failing = false
            throw new StorageFailure('io', 'the answer got lost', { nothingWritten: false })
          }
        },
      }))
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage, clock, autoCreate: false })
      await hw.ensureBasin('basin')
      const basin = hw.basin('basin')
      await basin.ensureStream('s')
      await basin.stream('s').append(['old-1', 'old-2'])
      let ended: string | undefined
      basin
        .stream('s')
        .read({ seqNum: 0 })
        .text$.subscribe({
          error: (e) => {
            ended = codeOf(e)
          },
        })
      await clock.settle()
      failing = true
      const first = await basin.deleteStream('s').then(() => 'ok', codeOf)
      const second = await basin.deleteStream('s').then(() => 'ok', codeOf)
      await clock.settle()
      expect([first, second]).toEqual(['storage', 'stream_not_found'])
      await basin.ensureStream('s')
      const tail = await basin.stream('s').checkTail()
      const read = await basin
        .stream('s')
        .readBatch({ seqNum: 0, waitSeconds: 0 })
        .then((b) => b.count, codeOf)
      expect({ tail: tail.seqNum, read, ended }).toEqual({
        tail: 0,
        read: 'range_not_satisfiable',
        ended: 'unavailable',
      })
      await hw.close()
    })
  }
})

describe('a refusal on a busy shared stream', () => {
  it('is told, however fast a rival appends', async () => {
    const data = testStorage()
    const clock = testClock({ now: 1_000_000 })
    let rivalling = false
    let rivals = 0
    const rival = await open({ storage: data, clock })
    await rival.ensureBasin('basin')
    await rival.basin('basin').ensureStream('s')
    const busy = wrapped(data, {}, (session) => ({
      async head(logId) {
        // The rival appends in the time that the question takes.
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

describe('producer options', () => {
  for (const matchSeqNum of [-1, 1.5, Number.NaN, 2 ** 53]) {
    it(`matchSeqNum ${matchSeqNum} is invalid, as it is for append`, async () => {
      const clock = testClock({ now: 1_000_000 })
      const hw = await open({ storage: testStorage(), clock })
      const stream = hw.basin('basin').stream('s')
      expect(await stream.append('x', { matchSeqNum }).then(() => 'ok', codeOf)).toBe('invalid')
      const attempt = async () => {
        const producer = stream.producer({ matchSeqNum, lingerMs: 0 })
        const ticket = await producer.submit('x')
        await producer.flush()
        await ticket.ack()
      }
      expect(await attempt().then(() => 'ok', codeOf)).toBe('invalid')
      await hw.close()
    })
  }
})
