import { describe, expect, it } from 'vitest'
import { mirror } from '../../adapters/sync/mirror.ts'
import { trimRecord } from '../../src/index.ts'
import { contentOf, openBoth, until } from './mirrored.ts'

const TEN = Array.from({ length: 10 }, (_, i) => ({ body: `${i}`, timestamp: 100 * i }))

describe('a copy begins', () => {
  it.each([
    ['with the first record', {}, 0],
    ['with a sequence number', { seqNum: 7 }, 7],
    ['with a timestamp', { timestamp: 250 }, 3],
    ['with the last records', { tailOffset: 4 }, 6],
    ['with the first record if there are fewer', { tailOffset: 40 }, 0],
    ['at the tail', { tailOffset: 0 }, 10],
    ['at the tail if the start is beyond it', { seqNum: 40 }, 10],
  ])('%s', async (_, from, expected) => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(TEN)
    const copy = start({ from })
    await until(copy, 'live', clock)
    await origin.append([{ body: 'live', timestamp: 2_000 }])
    await clock.settle()
    const { records } = await contentOf(local)
    expect(records).toEqual((await contentOf(origin)).records.slice(expected))
  })

  it('with the first record that the remote stream still has', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append([...TEN, trimRecord(4)])
    await clock.advance('1h')
    await until(start(), 'live', clock)
    expect((await contentOf(local)).records[0]!.seqNum).toBe(4)
    expect(await contentOf(local)).toEqual(await contentOf(origin))
  })

  it('once: a later mirror continues it, wherever it would begin itself', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(TEN)
    const first = start({ from: { tailOffset: 2 } })
    await until(first, 'live', clock)
    await first.close()
    await origin.append([{ body: 'later', timestamp: 2_000 }])
    await until(start({ from: { seqNum: 0 } }), 'live', clock)
    expect((await contentOf(local)).records.map(({ seqNum }) => seqNum)).toEqual([8, 9, 10])
  })
})

describe('the local stream', () => {
  it('exists at once, even without a connection', async () => {
    const { local, start, clock, network } = await openBoth()
    network.refuse()
    const copy = start()
    await until(copy, 'offline', clock)
    expect(await contentOf(local)).toEqual({ records: [], end: 0 })
  })

  it('rejects what an app appends like to any stream', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append('a')
    await until(start(), 'live', clock)
    await expect(local.append('mine')).rejects.toMatchObject({ code: 'invalid', field: 'timestamp' })
  })
})

describe('restart', () => {
  it('begins elsewhere', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(TEN)
    const copy = start({ from: { tailOffset: 2 } })
    await until(copy, 'live', clock)
    await copy.restart({ from: { seqNum: 3 } })
    await until(copy, 'live', clock)
    expect((await contentOf(local)).records).toEqual((await contentOf(origin)).records.slice(3))
    await copy.restart()
    await until(copy, 'live', clock)
    expect((await contentOf(local)).records).toHaveLength(2)
  })

  it('keeps the copy if the remote stream cannot be read', async () => {
    const { origin, local, start, clock } = await openBoth()
    await origin.append(TEN)
    const copy = start()
    await until(copy, 'live', clock)
    await origin.delete()
    await until(copy, 'stopped', clock)
    await expect(copy.restart()).rejects.toMatchObject({ code: 'stream_not_found' })
    expect((await contentOf(local)).records).toHaveLength(10)
  })

  it('ends with the mirror, also without a network, and keeps the copy', async () => {
    const { origin, local, start, clock, network } = await openBoth()
    await origin.append(TEN)
    const copy = start({ from: { tailOffset: 5 } })
    await until(copy, 'live', clock)
    network.refuse()
    const restarted = copy.restart()
    await clock.advance('1s')
    const closed = copy.close()
    await expect(restarted).rejects.toMatchObject({ code: 'closed' })
    await closed
    await expect(copy.restart()).rejects.toMatchObject({ code: 'closed' })
    network.heal()
    await clock.advance('10m')
    expect((await contentOf(local)).records).toHaveLength(5)
  })

  it('rejects with the reason of its signal', async () => {
    const { start } = await openBoth()
    const reason = new Error('gave up')
    await expect(start().restart({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})

describe('mirror', () => {
  it.each([
    [{ from: { seqNum: -1 } }, 'seqNum'],
    [{ from: { start: 1 } }, 'from.start'],
    [{ from: { seqNum: 1, tailOffset: 1 } }, 'seqNum'],
    [{ signal: 1 }, 'signal'],
    [{ random: 1 }, 'random'],
    [{ form: {} }, 'form'],
  ])('rejects the options %j', async (options, field) => {
    const { remote, local } = await openBoth()
    expect(() => mirror(remote, local, options as object)).toThrow(
      expect.objectContaining({ code: 'invalid', field }),
    )
  })

  it('rejects two handles of one stream', async () => {
    const { local } = await openBoth()
    expect(() => mirror(local, local)).toThrow(expect.objectContaining({ code: 'invalid', field: 'local' }))
  })

  it('copies from another engine in the process too', async () => {
    const { server, local, origin, clock } = await openBoth()
    await origin.append(TEN)
    const copy = mirror(server.stream, local)
    await until(copy, 'live', clock)
    await origin.append('live')
    await clock.settle()
    expect(await contentOf(local)).toEqual(await contentOf(origin))
    await copy.close()
  })
})
