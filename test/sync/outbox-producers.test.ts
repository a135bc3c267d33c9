import { describe, expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { HeadwaterError, open, trimRecord } from '../../src/index.ts'
import { wrapped } from '../support/index.ts'
import { openBoth, openDevice, openServer } from './mirrored.ts'
import { bodies, conditionsOf, delayNext, isPost, openSent, startOn, watch } from './outboxes.ts'

describe('an outbox of a server with producers', () => {
  test('sends a first batch on condition of the tail, and the next ones without', async () => {
    const { box, origin, clock, network, server, conditions } = await openSent()
    await origin.append('other')
    const requests = watch(network)
    for (const body of ['1', '2']) {
      await box.append(body)
      await clock.settle()
    }
    const id = box.log.state.progress!.producer
    expect(conditions).toEqual([
      { matchSeqNum: 0, producer: { id, epoch: 0, seq: 0 } },
      { matchSeqNum: undefined, producer: { id, epoch: 0, seq: 1 } },
      { matchSeqNum: undefined, producer: { id, epoch: 0, seq: 2 } },
    ])
    expect(requests).toEqual(['POST', 'POST'])
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2'])
  })

  test('writes twice to its log for each batch: with the attempt to send it, and with its place', async () => {
    const { box, clock, hw } = await openSent()
    const log = hw.basin('basin').stream('.outbox/stream')
    const kinds = async () => (await log.read().toArray()).map(({ headers }) => headers[0]![1].split(' ')[0])
    const before = await kinds()
    for (const body of ['1', '2']) {
      await box.append(body)
      await clock.settle()
    }
    const each = ['record', 'attempt', 'progress']
    expect((await kinds()).slice(before.length)).toEqual([...each, ...each])
  })

  test('writes once for each batch to its log if an app waits for one to send the next', async () => {
    let appends = 0
    const storage = wrapped(memory(), {}, (session) => ({
      append: (...args) => {
        appends++
        return session.append(...args)
      },
    }))
    const server = await openServer()
    const { hw, remote } = await openDevice(server, storage)
    const box = startOn({ hw, remote })
    await (await box.append('0')).confirmed()
    await server.clock.settle()
    const before = appends
    for (const body of ['1', '2', '3', '4']) await (await box.append(body)).confirmed()
    expect(appends - before).toBe(4)
    await server.clock.settle()
    expect(appends - before).toBe(5)
    const log = await hw.basin('basin').stream('.outbox/stream').read().toArray()
    const kinds = log.map(({ headers }) => headers[0]![1].split(' ')[0])
    const each = ['progress', 'record', 'attempt']
    expect(kinds.slice(-15)).toEqual(
      [...each, ...each, ...each, ...each, ...each].slice(1).concat('progress'),
    )
    expect(await bodies(server)).toEqual(['0', '1', '2', '3', '4'])
  })

  test('sends in the order of the log when another tab has appended first', async () => {
    const { clock, hw, remote, server, conditions } = await openSent()
    const other = startOn({ hw, remote })
    await clock.settle()
    const boxes = [other, startOn({ hw, remote })]
    for (let index = 0; index < 6; index++) await boxes[index % 2]!.append(`${index}`)
    await clock.settle()
    expect(await bodies(server)).toEqual(['0', ...Array.from('012345')])
    expect(conditions.filter(({ matchSeqNum }) => matchSeqNum !== undefined)).toHaveLength(1)
  })

  test('sends a batch again whose response was lost, and reads nothing', async () => {
    const { box, clock, network, server } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    const requests = watch(network)
    const appended = await box.append('1')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1'])
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 }, end: { seqNum: 2 } })
    expect(requests).toEqual(['POST', 'POST'])
  })

  test('stores a batch once that arrives late, though others have written since', async () => {
    const { box, clock, server, origin } = await openSent()
    const deliver = delayNext(server)
    await box.append('1')
    await clock.settle()
    await origin.append('other')
    await clock.advance('1m')
    await box.append('2')
    await clock.advance('1m')
    expect(await deliver()).not.toBe(200)
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2'])
  })

  test('finds a batch stored that arrived late, before it was sent again', async () => {
    const { box, clock, network, server, origin } = await openSent()
    const deliver = delayNext(server)
    await box.append('1')
    await clock.settle()
    network.refuse()
    await origin.append('other')
    expect(await deliver()).toBe(200)
    network.heal()
    await clock.advance('1m')
    await box.append('2')
    await clock.settle()
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2'])
  })

  test('finds a batch stored that is refused when a new outbox repeats it', async () => {
    const both = await openSent()
    const { box, clock, network, server } = both
    network.loseResponse({ when: isPost, nth: 1 })
    await box.append('1')
    await clock.settle()
    await box.close()
    network.respond(403, { code: 'permission_denied', when: isPost })
    const again = startOn(both)
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1'])
    expect(again.failed).toEqual([])
    expect(again.isFlushed).toBe(true)
  })

  test('does not know the outcome of a refused batch that may have been trimmed since', {
    tags: ['slow'],
  }, async () => {
    const { box, clock, network, origin } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    await box.append('1')
    network.refuse()
    await clock.settle()
    await origin.append([trimRecord(2)])
    await clock.advance('1h')
    network.heal()
    network.respond(403, { code: 'permission_denied', when: isPost })
    await clock.advance('10m')
    expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
  })

  test('does not know the outcome of a refused batch if the server refuses reads too', async () => {
    const { box, clock, network } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    await box.append('1')
    await clock.settle()
    network.respond(403, { code: 'permission_denied' })
    await clock.advance('10m')
    expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
  })

  test('finds a batch stored whose response was lost, even if the server then refuses it', async () => {
    const { box, clock, network, server } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    network.respond(403, { code: 'permission_denied', when: isPost })
    const appended = await box.append('1')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1'])
    expect(box.failed).toEqual([])
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 } })
  })

  test('repeats a batch in doubt from another tab, and then begins an epoch', async () => {
    const { box, storage, clock, network, server, origin } = await openSent()
    const deliver = delayNext(server)
    await box.append('1')
    await clock.settle()
    network.refuse()
    await box.append('2')
    await box.close()
    await origin.append('other')
    await deliver()
    await server.restart()
    network.heal()
    const tab = await openDevice(server, storage)
    const conditions = conditionsOf(tab.remote)
    startOn(tab)
    await clock.advance('1m')
    expect(conditions.map(({ producer }) => producer)).toMatchObject([
      { epoch: 0, seq: 1 },
      { epoch: 0, seq: 2 },
    ])
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2'])
    const next = startOn(await openDevice(server, storage))
    await next.append('3')
    await clock.advance('1m')
    await deliver()
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2', '3'])
  })

  test('begins an epoch after a minute, and fences off what was sent before', async () => {
    const { box, clock, server, conditions } = await openSent()
    await clock.advance('2m')
    await box.append('1')
    await clock.settle()
    expect(conditions[1]).toMatchObject({ matchSeqNum: 1, producer: { epoch: 1, seq: 0 } })
    const late = { producer: { id: box.log.state.progress!.producer, epoch: 0, seq: 1 } }
    await expect(server.stream.append('late', late)).rejects.toMatchObject({ code: 'producer_fenced' })
  })

  test.each([
    ['does not know it', new HeadwaterError('producer_gap', 'forgotten', { expectedSeq: 0 }), 1],
    ['knows a greater epoch', new HeadwaterError('producer_fenced', 'fenced', { producerEpoch: 7 }), 8],
    ['knows later batches', new HeadwaterError('already_appended', 'later', { lastSeq: 9 }), 1],
  ])('begins an epoch on condition of the tail if the server %s', async (_, error, epoch) => {
    const both = await openSent(({ producer }) =>
      producer?.epoch === 0 && producer.seq > 0 ? error : undefined,
    )
    const { box, clock, server, origin, conditions } = both
    await origin.append('other')
    await box.append('1')
    await clock.advance('1m')
    expect(conditions.at(-1)).toMatchObject({ matchSeqNum: 2, producer: { epoch, seq: 0 } })
    expect(await bodies(server)).toEqual(['0', 'other', '1'])
  })

  test.each([
    ['producer_gap', { expectedSeq: 0 }],
    ['producer_fenced', { producerEpoch: 7 }],
  ] as const)('makes few attempts if the server always answers `%s`', async (code, details) => {
    let isBroken = false
    const error = new HeadwaterError(code, 'rejected', details)
    const { box, clock, server, conditions } = await openSent(({ producer }) =>
      isBroken && producer !== undefined ? error : undefined,
    )
    isBroken = true
    await box.append('1')
    await clock.advance('1m')
    expect(box.state).toMatchObject({ kind: 'offline', error: { code } })
    expect(conditions.length).toBeGreaterThan(3)
    expect(conditions.length).toBeLessThan(20)
    isBroken = false
    await clock.advance('2m')
    await box.append('2')
    await clock.settle()
    expect(await bodies(server)).toEqual(['0', '1', '2'])
  })

  test('finds a batch that was stored before the server forgot the producer', async () => {
    let isForgotten = false
    const gap = new HeadwaterError('producer_gap', 'forgotten', { expectedSeq: 0 })
    const { box, clock, network, server } = await openSent(({ producer }) =>
      isForgotten && producer?.epoch === 0 ? gap : undefined,
    )
    network.loseResponse({ when: isPost, nth: 1 })
    network.refuse({ when: isPost, nth: 2 })
    await box.append('1')
    await clock.settle()
    isForgotten = true
    network.heal()
    await clock.advance('1m')
    await box.append('2')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1', '2'])
  })

  test('sends to a stream that was deleted and created again what was not in doubt', async () => {
    const { box, clock, server, origin } = await openSent()
    await origin.delete()
    await origin.append(['a', 'b', 'c'])
    await box.append('1')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['a', 'b', 'c', '1'])
    expect(box.failed).toEqual([])
  })

  test('needs no records that were trimmed to know that a batch was stored', async () => {
    const { box, clock, network, server, origin } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    const appended = await box.append('1')
    await clock.settle()
    await origin.append('other')
    await origin.trim(2)
    await clock.advance('1m')
    expect(box.failed).toEqual([])
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 } })
    expect((await bodies(server))[0]).toBe('other')
  })

  test('sends without a producer if the stream knows too many', async () => {
    const error = new HeadwaterError('too_many_producers', 'full')
    const { box, clock, server, conditions } = await openSent(({ producer }) => producer && error)
    await clock.advance('1m')
    await box.append('1')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['0', '1'])
    expect(conditions.map(({ producer }) => producer !== undefined)).toEqual([true, false, false])
  })

  test('uses them in an engine of the same process too', async () => {
    const { hw, clock } = await openBoth()
    const other = await open({ storage: memory(), clock })
    onTestFinished(() => other.close())
    const remote = other.basin('basin').stream('stream')
    const box = startOn({ hw, remote })
    for (const body of ['0', '1']) {
      await box.append(body)
      await clock.settle()
    }
    const repeated = { producer: { id: box.log.state.progress!.producer, epoch: 0, seq: 1 } }
    expect(await remote.append('1', repeated)).toMatchObject({ duplicate: true, start: { seqNum: 1 } })
  })
})
