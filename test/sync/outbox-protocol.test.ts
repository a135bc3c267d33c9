import { describe, expect, it } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import { openDevice, openServer, until } from './mirrored.ts'
import { type AppendCall, conditionsOf, delayNext, isPost, openSent, startOn } from './outboxes.ts'

type Kind = 'outbox' | 'synced stream'

/** A device that has sent `0`, by a server with or without producers. */
async function openDeviceOf(kind: Kind, ignoresProducers: boolean) {
  const server = await openServer({ trimGraceMs: 0 })
  const { clock, network } = server
  server.settings.ignoresProducers = ignoresProducers
  await server.stream.readBatch({}, { create: true })
  const storage = faultyStorage(memory())
  const openTab = async () => {
    const device = await openDevice(server, storage)
    if (kind === 'outbox') {
      const box = startOn(device)
      return { ...device, storage, box, end: () => box.close(), synced: undefined }
    }
    const synced = device.startSynced()
    return { ...device, storage, box: synced.outbox, end: () => synced.close(), synced }
  }
  const first = await openTab()
  await clock.settle()
  await first.box.append('0')
  await clock.advance('5s')
  const stored = async () => {
    const records = await server.stream.read({}, { commands: false }).toArray()
    return records.map(({ body }) => body)
  }
  return { server, clock, network, openTab, stored, ...first }
}

type Opened = Awaited<ReturnType<typeof openDeviceOf>>

/** What happens around an append of `1`. Resolves to the outbox that goes on. */
const FAULTS: readonly (readonly [what: string, happens: (opened: Opened) => Promise<Opened['box']>])[] = [
  [
    'nothing fails',
    async ({ box }) => {
      await box.append('1')
      return box
    },
  ],
  [
    'the server cannot be reached for a while',
    async ({ box, network, clock }) => {
      network.refuse()
      await box.append('1')
      await clock.advance('1m')
      network.heal()
      return box
    },
  ],
  [
    'a response is lost',
    async ({ box, network }) => {
      network.loseResponse({ nth: 1, when: isPost })
      await box.append('1')
      return box
    },
  ],
  [
    'all responses are lost for a while, and records are added',
    async ({ box, network, clock }) => {
      network.loseResponse({ when: isPost })
      await box.append('1')
      await clock.advance('5s')
      await box.append('1b')
      await clock.advance('1m')
      network.heal()
      return box
    },
  ],
  [
    'a request arrives late, after it was sent again',
    async ({ box, server, clock }) => {
      const deliver = delayNext(server)
      await box.append('1')
      await clock.advance('1m')
      await deliver()
      return box
    },
  ],
  [
    'a request arrives late, before it is sent again',
    async ({ box, server, clock, network }) => {
      const deliver = delayNext(server)
      await box.append('1')
      await clock.settle()
      network.refuse()
      await server.stream.append('other')
      await deliver()
      network.heal()
      return box
    },
  ],
  [
    'another writer is first',
    async ({ box, server, clock, network }) => {
      network.refuse()
      await box.append('1')
      await clock.settle()
      await server.stream.append(['other', 'other'])
      network.heal()
      return box
    },
  ],
  [
    'the device cannot note what it has sent',
    async ({ box, storage, clock }) => {
      storage.fail('append', { kind: 'io', nth: 2 })
      await box.append('1')
      await clock.advance('1m')
      storage.heal()
      return box
    },
  ],
  [
    'its tab ends with a request in flight, and another one takes over',
    async ({ box, clock, network, openTab, end }) => {
      network.loseResponse({ nth: 1, when: isPost })
      await box.append('1')
      await clock.settle()
      network.refuse()
      await end()
      network.heal()
      return (await openTab()).box
    },
  ],
  [
    'its tab ends, and its request arrives after another tab has taken over',
    async ({ box, server, clock, openTab, network, end }) => {
      const deliver = delayNext(server)
      await box.append('1')
      await clock.settle()
      network.refuse()
      await end()
      network.heal()
      const next = await openTab()
      await clock.advance('1m')
      await deliver()
      return next.box
    },
  ],
  [
    'the server starts again',
    async ({ box, server }) => {
      await server.restart()
      await box.append('1')
      return box
    },
  ],
]

const CASES = (['outbox', 'synced stream'] as const).flatMap((kind) =>
  [false, true].flatMap((ignores) => FAULTS.map(([what, happens]) => ({ kind, ignores, what, happens }))),
)

it.each(CASES)(
  'each record of an $kind is stored once and in order if $what (without producers: $ignores)',
  async ({ kind, ignores, happens }) => {
    const opened = await openDeviceOf(kind, ignores)
    const box = await happens(opened)
    await opened.clock.advance('2m')
    const last = await box.append('2')
    await opened.clock.advance('2m')
    const stored = await opened.stored()
    const own = stored.filter((body) => body !== 'other')
    expect(own).toEqual(own.includes('1b') ? ['0', '1', '1b', '2'] : ['0', '1', '2'])
    expect(await last.confirmed()).toMatchObject({ start: { seqNum: stored.indexOf('2') } })
    expect(box.failed).toEqual([])
    expect(box.isFlushed).toBe(true)
  },
)

describe('an outbox of a server with producers', () => {
  it('sends the first batch on condition of the tail too, and later ones as the next of its producer', async () => {
    const { box, origin, clock, conditions } = await openSent()
    await origin.append('other')
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
  })

  it('gives no number of the producer to two batches', async () => {
    const refused = new HeadwaterError('invalid', 'refused', { mayHaveEffects: false })
    let refuses = true
    const { box, clock, conditions } = await openSent(({ producer }) =>
      refuses && producer?.seq === 1 ? refused : undefined,
    )
    const { number } = await box.append('1')
    await clock.settle()
    refuses = false
    await box.retry(number)
    await clock.settle()
    const batches = conditions.map(({ producer }) => [producer!.epoch, producer!.seq])
    expect(batches).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
    ])
  })

  it('does not compete for the tail with writers who are always faster', async () => {
    const { box, clock, remote, server } = await openSent()
    const append = remote.append.bind(remote)
    let losses = 0
    remote.append = async (...given: AppendCall) => {
      if (given[1]?.matchSeqNum !== undefined && ++losses < 100) await server.stream.append('other')
      return append(...given)
    }
    await clock.advance('2m')
    const { confirmed } = await box.append('1')
    await clock.advance('1m')
    await confirmed()
    expect(losses).toBeLessThan(10)
  })

  it.each([
    ['one batch', ['theirs']],
    ['several', ['theirs', 'theirs too']],
  ])('sends what a restored device appends after %s of the time before', async (_, bodies) => {
    const { box, clock, server, hw } = await openSent()
    const restored = await openDevice(server)
    const logs = [hw, restored.hw].map((engine) => engine.basin('basin').stream('.outbox/stream'))
    for (const { headers, body } of await logs[0]!.read({}, { as: 'bytes' }).toArray())
      await logs[1]!.append({ headers, body })
    for (const body of bodies) {
      await box.append(body)
      await clock.advance('1m')
    }
    await box.close()
    const random = new Prng(2)
    const next = startOn(restored, { random: () => random.next() })
    const { confirmed } = await next.append('mine')
    await clock.advance('1m')
    expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['0', ...bodies, 'mine'])
    expect(await confirmed()).toMatchObject({ start: { seqNum: bodies.length + 1 } })
  })

  it('knows where a batch is whose acknowledgement was lost and whose records were trimmed', async () => {
    const { box, clock, network, origin } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    const appended = await box.append(['1', '2'])
    await clock.settle()
    await origin.append('other')
    await origin.trim(3)
    await clock.advance('1m')
    expect(box.failed).toEqual([])
    expect(await appended.confirmed()).toMatchObject({ start: { seqNum: 1 }, end: { seqNum: 3 } })
  })

  it.each([
    ['does not know the producer', new HeadwaterError('producer_gap', 'forgotten', { expectedSeq: 0 })],
    ['knows a greater epoch', new HeadwaterError('producer_fenced', 'fenced', { producerEpoch: 7 })],
    ['knows later batches', new HeadwaterError('already_appended', 'later', { lastSeq: 9 })],
  ])('goes on if the server %s', async (_, error) => {
    let rejects = true
    const { box, clock, server, origin } = await openSent(({ producer }) => {
      const isRejected = rejects && producer?.seq === 1
      if (isRejected) rejects = false
      return isRejected ? error : undefined
    })
    await origin.append('other')
    await box.append('1')
    await clock.advance('1m')
    expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['0', 'other', '1'])
  })

  it.each(['producer_gap', 'producer_fenced'] as const)(
    'makes few attempts if the server always answers `%s`',
    async (code) => {
      let isBroken = false
      const error = new HeadwaterError(code, 'rejected', { expectedSeq: 0 })
      const { box, clock, conditions } = await openSent(({ producer }) =>
        isBroken && producer !== undefined ? error : undefined,
      )
      isBroken = true
      await box.append('1')
      await clock.advance('1m')
      expect(box.state).toMatchObject({ kind: 'offline', error: { code } })
      expect(conditions.length).toBeLessThan(20)
      isBroken = false
      await clock.advance('2m')
      expect(box.isFlushed).toBe(true)
    },
  )

  it('sends to a stream that was deleted and created again what was not in doubt', async () => {
    const { box, clock, server, origin } = await openSent()
    await origin.delete()
    await origin.append(['a', 'b', 'c'])
    await box.append('1')
    await clock.advance('1m')
    expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['a', 'b', 'c', '1'])
    expect(box.failed).toEqual([])
  })

  it('parks what was in doubt if the stream is shorter than it was', async () => {
    const { box, clock, network, origin } = await openSent()
    await origin.append(['other', 'other'])
    await clock.advance('2m')
    await box.append('1')
    await clock.settle()
    network.loseResponse({ when: isPost })
    await clock.advance('2m')
    await box.append('2')
    await clock.settle()
    network.refuse()
    await origin.delete()
    await origin.append('new')
    network.heal()
    await clock.advance('2m')
    expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
    expect((await origin.read().toArray()).map(({ body }) => body)).toEqual(['new'])
  })

  it.each([
    ['the server has stored it', true],
    ['nothing shows that the server has stored it', false],
  ])(
    'a batch that may be stored is resolved after the server has stopped to support producers, if %s',
    async (_, isStored) => {
      const { box, clock, network, server } = await openSent()
      const deliver = isStored ? undefined : delayNext(server)
      if (isStored) network.loseResponse({ when: isPost, nth: 1 })
      await box.append('1')
      await clock.settle()
      server.settings.ignoresProducers = true
      await clock.advance('20m')
      if (isStored) expect(box.failed).toEqual([])
      else {
        expect(box.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
        // A late request finds a server with producers after all.
        server.settings.ignoresProducers = false
        expect(await deliver!()).toBe(200)
        await box.retry(box.failed[0]!.number)
      }
      await clock.advance('2m')
      await box.append('2')
      await clock.advance('2m')
      expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['0', '1', '2'])
      expect(box.failed).toEqual([])
    },
  )

  it('sends on condition of the tail if others are faster and the stream knows too many producers', async () => {
    const error = new HeadwaterError('too_many_producers', 'full', { mayHaveEffects: false })
    const server = await openServer()
    await server.stream.readBatch({}, { create: true })
    const { hw, remote } = await openDevice(server)
    const append = remote.append.bind(remote)
    let losses = 0
    remote.append = async (...given: AppendCall) => {
      if (given[1]?.matchSeqNum === undefined) throw error
      if (++losses < 6) await server.stream.append('other')
      return append(...given)
    }
    const box = startOn({ hw, remote })
    const { confirmed } = await box.append('0')
    await server.clock.advance('2m')
    expect(await confirmed()).toMatchObject({ start: { seqNum: 5 } })
  })

  it('sends without a producer if the stream knows too many', async () => {
    const error = new HeadwaterError('too_many_producers', 'full', { mayHaveEffects: false })
    const { box, clock, server, conditions } = await openSent(({ producer }) => producer && error)
    await box.append('1')
    await clock.advance('1m')
    expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['0', '1'])
    expect(conditions.map(({ producer }) => producer !== undefined)).toEqual([true, false, false])
  })
})

describe('an outbox of a server without producers', () => {
  it('sends each batch on condition of the tail, and uses producers once the server has them', async () => {
    const server = await openServer()
    server.settings.ignoresProducers = true
    await server.stream.readBatch({}, { create: true })
    const device = await openDevice(server)
    const conditions = conditionsOf(device.remote)
    const box = startOn(device)
    for (const body of ['0', '1']) {
      await box.append(body)
      await server.clock.settle()
    }
    expect(conditions.map(({ matchSeqNum }) => matchSeqNum)).toEqual([0, 0, 1])
    expect(conditions.map(({ producer }) => producer !== undefined)).toEqual([true, false, false])
    server.settings.ignoresProducers = false
    // It looks again after a failure, such as that of a server that is replaced.
    server.network.refuse()
    await box.append('2')
    await server.clock.advance('1m')
    server.network.heal()
    for (const body of ['3', '4']) {
      await server.clock.advance('1m')
      await box.append(body)
    }
    await server.clock.settle()
    expect(conditions.at(-1)).toMatchObject({ matchSeqNum: undefined, producer: { seq: 1 } })
  })

  it('parks what may be among records that were trimmed, and nothing behind it', async () => {
    const { box, network, clock, server, stored } = await openDeviceOf('outbox', true)
    network.loseResponse({ when: isPost })
    const { number } = await box.append('1')
    await clock.settle()
    await box.append('2')
    network.refuse()
    await server.stream.append('other')
    await server.stream.trim(3)
    await clock.advance('1m')
    network.heal()
    await clock.advance('2m')
    expect(box.failed).toMatchObject([{ number, error: { code: 'outcome_unknown' } }])
    await box.discard(number)
    await clock.advance('2m')
    expect(await stored()).toEqual(['2'])
  })
})

describe('a refused batch', () => {
  it.each([
    ['is confirmed if an earlier attempt was stored', false],
    ['is parked as unknown if the server refuses reads too', true],
  ])('%s', async (_, refusesReads) => {
    const { box, clock, network } = await openSent()
    network.loseResponse({ when: isPost, nth: 1 })
    await box.append('1')
    await clock.settle()
    network.respond(403, { code: 'permission_denied', ...(!refusesReads && { when: isPost }) })
    await clock.advance('10m')
    const failed = refusesReads ? [{ error: { code: 'outcome_unknown' } }] : []
    expect(box.failed).toMatchObject(failed)
    expect(box.isFlushed).toBe(true)
  })

  it.each([
    ['one', ['1']],
    ['several', ['1', '2']],
  ])('of %s is not stored twice if an earlier copy of it arrives after it was parked', async (_, bodies) => {
    const { box, hw, remote, clock, network, server } = await openSent()
    network.refuse()
    await box.append('first')
    await clock.settle()
    for (const body of bodies) await box.append(body)
    await clock.advance('1m')
    network.heal()
    await clock.settle()
    // The batch behind the first one.
    const deliver = delayNext(server, 1)
    network.respond(403, {
      code: 'permission_denied',
      when: (request) => isPost(request) && deliver.isLate(),
    })
    await clock.advance('5m')
    expect(box.failed).toMatchObject([{ error: { code: 'permission_denied' } }])
    network.heal()
    expect(await deliver()).toBe(200)
    await box.close()
    const next = startOn({ hw, remote })
    await next.log.loaded()
    await next.retry(next.failed[0]!.number)
    await clock.advance('2m')
    expect((await server.stream.read().toArray()).map(({ body }) => body)).toEqual(['0', 'first', ...bodies])
    expect(next.isFlushed).toBe(true)
  })
})

describe('a synced stream whose stream is deleted and created again', () => {
  it.each([
    ['shorter', 5],
    ['longer', 40],
  ])('does not send what is in doubt to one that is %s, and parks it at a restart', async (_, length) => {
    const { synced, server, clock, network } = await openDeviceOf('synced stream', false)
    await server.stream.append(Array.from({ length: 20 }, () => 'other'))
    await until(synced!.mirror, 'live', clock)
    delayNext(server)
    await synced!.append('1')
    await clock.settle()
    network.refuse()
    await clock.advance('1s')
    await server.stream.delete()
    await server.stream.append(Array.from({ length }, () => 'new'))
    network.heal()
    expect(await until(synced!.mirror, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
    await synced!.mirror.restart()
    await clock.advance('2m')
    expect(await server.stream.read().toArray()).toHaveLength(length)
    expect(synced!.outbox.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
  })

  it.each<[string, string[], isCreated: boolean]>([
    ['created again, and empty', [], true],
    ['created again, and not empty', ['new'], true],
    ['missing', [], false],
  ])('parks what is in doubt if it was empty, and is %s', async (_, bodies, isCreated) => {
    const server = await openServer()
    const { clock, network, stream } = server
    await stream.readBatch({}, { create: true })
    // The client does not repeat the request: one that arrives late finds the tail that it requires.
    const { startSynced } = await openDevice(server, memory(), { retries: 0 })
    const synced = startSynced()
    await until(synced.mirror, 'live', clock)
    delayNext(server)
    await synced.append('1')
    await clock.settle()
    network.refuse()
    await clock.advance('1s')
    await stream.delete()
    if (isCreated) await stream.readBatch({}, { create: true })
    if (bodies.length > 0) await stream.append(bodies)
    network.heal()
    const later = await synced.append('2')
    await clock.advance('5m')
    expect(synced.outbox.failed).toMatchObject([{ error: { code: 'outcome_unknown' } }])
    await synced.outbox.discard(synced.outbox.failed[0]!.number)
    await clock.advance('1m')
    await later.confirmed()
    expect((await stream.read().toArray()).map(({ body }) => body)).toEqual([...bodies, '2'])
  })
})
