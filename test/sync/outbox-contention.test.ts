import { describe, expect, test } from 'vitest'
import { HeadwaterError } from '../../src/index.ts'
import { openBoth, openDevice } from './mirrored.ts'
import { type AppendCall, bodies, conditionsOf, startOn } from './outboxes.ts'

describe('an outbox that others are faster than', () => {
  /** A first batch of which others take the place, once. */
  async function openBeaten() {
    const both = await openBoth()
    await both.origin.readBatch({}, { create: true })
    let isFirst = true
    const append = both.remote.append.bind(both.remote)
    both.remote.append = async (...given: AppendCall) => {
      if (isFirst) await both.origin.append('other')
      isFirst = false
      return append(...given)
    }
    return { ...both, conditions: conditionsOf(both.remote) }
  }
  const isFree = (request: Request) =>
    request.headers.get('headwater-append')?.includes('epoch=1&seq=0&match_seq_num=any') === true

  test('asks the server whether it supports producers, and sends without a condition', async () => {
    const { remote, hw, clock, server, conditions } = await openBeaten()
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('5s')
    const id = box.log.state.progress!.producer
    expect(conditions).toEqual([
      { matchSeqNum: 0, producer: { id, epoch: 0, seq: 0 } },
      { matchSeqNum: undefined, producer: { id: `${id}/probe`, epoch: 0, seq: 1 } },
      { matchSeqNum: undefined, producer: { id, epoch: 1, seq: 0 } },
    ])
    await box.append('1')
    await clock.settle()
    expect(conditions.at(-1)).toEqual({ matchSeqNum: undefined, producer: { id, epoch: 1, seq: 1 } })
    expect(await bodies(server)).toEqual(['other', '0', '1'])
  })

  test('asks a server once that stores the question', async () => {
    const { origin, remote, hw, clock, server } = await openBoth()
    const append = remote.append.bind(remote)
    let isOthersTurn = true
    remote.append = async (...[records, options]: AppendCall) => {
      // Another writer is always first, and producers are ignored.
      if (options?.matchSeqNum !== undefined && isOthersTurn) await origin.append('other')
      isOthersTurn = !isOthersTurn
      return append(records, { ...options, producer: undefined })
    }
    const box = startOn({ hw, remote })
    for (const body of ['0', '1', '2', '3']) {
      await box.append(body)
      await clock.advance('30s')
    }
    const stored = await bodies(server)
    expect(stored.filter((body) => body === '')).toHaveLength(1)
    expect(stored.filter((body) => /\d/.test(body))).toEqual(['0', '1', '2', '3'])
  })

  test('stores the batch once, whose response was lost, also if it arrives once more', async () => {
    const { remote, hw, clock, server, network, origin } = await openBeaten()
    let copy: Request | undefined
    network.drop({
      when: (request) => {
        if (isFree(request)) copy ??= request.clone()
        return false
      },
    })
    network.loseResponse({ nth: 1, when: isFree })
    const box = startOn({ hw, remote })
    const appended = await box.append('0')
    await clock.advance('1m')
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 } })
    await server.handle(copy!.clone())
    await origin.append('other')
    await clock.advance('2m')
    await box.append('1')
    await clock.advance('5s')
    await server.handle(copy!.clone())
    expect(await bodies(server)).toEqual(['other', '0', 'other', '1'])
  })

  test('examines what was stored before another tab sends the batch again', async () => {
    const { remote, hw, clock, server, network, origin, storage } = await openBeaten()
    network.refuse({ when: isFree })
    network.loseResponse({ nth: 1, when: isFree })
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('3s')
    await box.close()
    network.heal()
    await origin.append('other')
    const tab = await openDevice(server, storage)
    const conditions = conditionsOf(tab.remote)
    startOn(tab)
    await clock.advance('1m')
    const stored = (await bodies(server)).filter((body) => body === '0')
    expect(stored).toEqual(['0'])
    expect(conditions.filter(({ matchSeqNum }) => matchSeqNum !== undefined)).toEqual([])
  })

  test('does not get the batch stored by a server that ignores producers, however late', async () => {
    const { remote, hw, clock, server, network } = await openBeaten()
    let late: Request | undefined
    network.drop({
      nth: 1,
      when: (request) => {
        if (!isFree(request) || late !== undefined) return false
        late = request.clone()
        server.settings.ignoresProducers = true
        return true
      },
    })
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('1m')
    expect((await server.handle(late!.clone())).status).toBe(412)
    expect(await bodies(server)).toEqual(['other'])
    server.settings.ignoresProducers = false
    await clock.advance('1m')
    await server.handle(late!.clone())
    expect(await bodies(server)).toEqual(['other', '0'])
    expect(box.failed).toEqual([])
  })

  test('sends on condition of the tail if the server does not support producers', async () => {
    const { remote, hw, clock, server, conditions } = await openBeaten()
    server.settings.ignoresProducers = true
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('1m')
    expect(conditions.at(-1)).toEqual({ matchSeqNum: 1, producer: undefined })
    expect(await bodies(server)).toEqual(['other', '0'])
  })

  test('sends without a producer if the stream knows too many', async () => {
    const { remote, hw, clock, server } = await openBeaten()
    const full = new HeadwaterError('too_many_producers', 'full', { mayHaveEffects: false })
    conditionsOf(remote, ({ producer }) => (producer?.epoch === 1 ? full : undefined))
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['other', '0'])
    expect(box.failed).toEqual([])
  })
})
