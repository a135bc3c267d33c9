import { describe, expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { type OutboxOptions, outbox } from '../../adapters/sync/outbox.ts'
import { HeadwaterError, open, type Stream } from '../../src/index.ts'
import { openBoth, openDevice, type Server } from './mirrored.ts'

type Device = Awaited<ReturnType<typeof openDevice>>
type AppendCall = Parameters<Stream['append']>
type Conditions = Pick<NonNullable<AppendCall[1]>, 'matchSeqNum' | 'producer'>

function startOn({ hw, remote }: Pick<Device, 'hw' | 'remote'>, options: OutboxOptions = {}) {
  const log = hw.basin('basin').stream('.outbox/stream')
  const box = outbox(log, remote, { random: () => 0.5, coordinator: coordinateInThread, ...options })
  onTestFinished(() => box.close())
  return box
}

/** The conditions of the appends of a stream from now on. `reply` may answer instead of the server. */
function conditionsOf(
  remote: Stream,
  reply: (conditions: Conditions) => HeadwaterError | undefined = () => undefined,
): Conditions[] {
  const append = remote.append.bind(remote)
  const seen: Conditions[] = []
  remote.append = async (...[records, options]: AppendCall) => {
    const { matchSeqNum, producer } = options ?? {}
    seen.push({ matchSeqNum, producer })
    const error = reply({ matchSeqNum, producer })
    if (error !== undefined) throw error
    return append(records, options)
  }
  return seen
}

/** A server, and a device whose outbox has sent the first batch of an epoch. */
async function openSent(reply?: (conditions: Conditions) => HeadwaterError | undefined) {
  const both = await openBoth()
  await both.origin.readBatch({}, { create: true })
  const conditions = conditionsOf(both.remote, reply)
  const box = startOn(both)
  await box.append('0')
  await both.clock.settle()
  return { ...both, box, conditions }
}

const bodies = async (server: Server) => (await server.stream.read().toArray()).map(({ body }) => body)
const isPost = ({ method }: Request) => method === 'POST'

/** The methods of the requests from now on. */
function watch(network: Server['network']): string[] {
  const methods: string[] = []
  network.drop({
    when: ({ method }) => {
      methods.push(method)
      return false
    },
  })
  return methods
}

/** Drops the next append for the client, and returns a function that delivers it. */
function delayNext({ network, handle }: Server) {
  let late: Request | undefined
  network.drop({
    nth: 1,
    when: (request) => {
      if (!isPost(request) || late !== undefined) return false
      late = request.clone()
      return true
    },
  })
  return async () => (await handle(late!.clone())).status
}

describe('an outbox of a server with producers', () => {
  test('sends a first batch on condition of the tail, and the next ones without', async () => {
    const { box, origin, clock, network, server, conditions } = await openSent()
    await origin.append('other')
    const requests = watch(network)
    for (const body of ['1', '2']) {
      await box.append(body)
      await clock.settle()
    }
    const id = box.device!
    expect(conditions).toEqual([
      { matchSeqNum: 0, producer: { id, epoch: 0, seq: 0 } },
      { matchSeqNum: undefined, producer: { id, epoch: 0, seq: 1 } },
      { matchSeqNum: undefined, producer: { id, epoch: 0, seq: 2 } },
    ])
    expect(requests).toEqual(['POST', 'POST'])
    expect(await bodies(server)).toEqual(['0', 'other', '1', '2'])
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
    const late = { producer: { id: box.device!, epoch: 0, seq: 1 } }
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
    const repeated = { producer: { id: box.device!, epoch: 0, seq: 1 } }
    expect(await remote.append('1', repeated)).toMatchObject({ duplicate: true, start: { seqNum: 1 } })
  })
})

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

  test('asks the server whether it knows producers, and sends without a condition', async () => {
    const { remote, hw, clock, server, conditions } = await openBeaten()
    const box = startOn({ hw, remote })
    await box.append('0')
    await clock.advance('5s')
    const id = box.device!
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

  test('sends on condition of the tail if the server does not know producers', async () => {
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

  test('sends a batch again once the server knows producers again', async () => {
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
