import { describe, expect, test } from 'vitest'
import { openBoth } from './mirrored.ts'
import { bodies, conditionsOf, delayNext, isPost, openSent, startOn } from './outboxes.ts'

describe('an outbox of a server that ignores producers', () => {
  test('sends each batch on condition of the tail', async () => {
    const { server, remote, hw, origin, clock } = await openBoth()
    server.settings.ignoresProducers = true
    await origin.readBatch({}, { create: true })
    const conditions = conditionsOf(remote)
    const box = startOn({ hw, remote })
    for (const body of ['0', '1']) {
      await box.append(body)
      await clock.settle()
    }
    expect(conditions.map(({ matchSeqNum }) => matchSeqNum)).toEqual([0, 0, 1])
    expect(conditions.map(({ producer }) => producer !== undefined)).toEqual([true, false, false])
    expect(await bodies(server)).toEqual(['0', '1'])
  })

  test('uses them once the server knows them, after a failure', async () => {
    const { server, remote, hw, origin, clock, network } = await openBoth()
    server.settings.ignoresProducers = true
    await origin.readBatch({}, { create: true })
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.settle()
    server.settings.ignoresProducers = false
    network.refuse({ when: isPost })
    await box.append('offline')
    await clock.advance('1m')
    network.heal()
    await clock.advance('1m')
    const conditions = conditionsOf(remote)
    for (const body of ['1', '2']) {
      await box.append(body)
      await clock.advance('5s')
    }
    expect(conditions.at(-1)).toMatchObject({ matchSeqNum: undefined, producer: { seq: 2 } })
    expect(await bodies(server)).toEqual(['0', 'offline', '1', '2'])
  })

  test('holds a batch that a server with producers may still store, then sets it aside', async () => {
    const { box, clock, server, origin } = await openSent()
    const deliver = delayNext(server)
    server.settings.ignoresProducers = true
    await box.append('1')
    await origin.append('other')
    await clock.advance('1m')
    expect(box.state).toMatchObject({ kind: 'offline', error: { code: 'unsupported' } })
    await clock.advance('15m')
    expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
    // The proxy has another way to a server with producers.
    server.settings.ignoresProducers = false
    expect(await deliver()).toBe(200)
    await box.retry(box.failed[0]!.number)
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', 'other', '1'])
    expect(box.failed).toEqual([])
  })

  test('sends a parked batch if the app tries it again', async () => {
    const { box, clock, server } = await openSent()
    const deliver = delayNext(server)
    server.settings.ignoresProducers = true
    await box.append('1')
    await clock.advance('20m')
    expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
    await box.retry(box.failed[0]!.number)
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1'])
    expect(box.failed).toEqual([])
    expect(await deliver()).toBe(412)
  })

  test('sends a batch again once the server supports producers again', async () => {
    const { box, clock, server } = await openSent()
    const deliver = delayNext(server)
    server.settings.ignoresProducers = true
    await box.append('1')
    await clock.advance('1m')
    expect(await deliver()).toBe(412)
    server.settings.ignoresProducers = false
    await clock.advance('1m')
    await deliver()
    expect(await bodies(server)).toEqual(['0', '1'])
  })

  test('finds a batch that a server with producers has stored', async () => {
    const { box, clock, network, server } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    const appended = await box.append('1')
    await clock.settle()
    server.settings.ignoresProducers = true
    await clock.advance('20m')
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 } })
    await box.append('2')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1', '2'])
  })
})
