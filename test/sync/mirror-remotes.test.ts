import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { mirror } from '../../adapters/sync/mirror.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import type { RecordCursor } from '../../src/api/record-cursor.ts'
import { open, type Storage, type Stream } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import { gated } from '../support/gated-storage.ts'
import { contentOf, openDevice, openServer, until } from './mirrored.ts'

function record(seqNum: number): SequencedRecord {
  return { seqNum, timestamp: 1_000 + seqNum, headers: [], body: utf8(`${seqNum}`) }
}

function records(start: number, end: number): SequencedRecord[] {
  return Array.from({ length: end - start }, (_, i) => record(start + i))
}

/** A batch as a server may send it. */
function batch(sent: readonly SequencedRecord[], tail?: number) {
  const lastSeqNum = sent.at(-1)!.seqNum
  const summary = { count: sent.length, meteredBytes: 10 * sent.length, lastSeqNum }
  const position = tail === undefined ? undefined : { seqNum: tail, timestamp: 1_000 + tail - 1 }
  return { kind: 'batch', batch: new ReadBatch(new RecordBatch(sent), summary, position) } as const
}

/** A remote stream whose reads yield these events and then wait. */
function scripted(origin: Stream, events: ReturnType<typeof batch>[], tail = 10_000) {
  let taken = 0
  const remote = Object.create(origin, {
    openCursor: {
      value: async (): Promise<RecordCursor> => {
        let close = () => {}
        const closed = new Promise<undefined>((resolve) => {
          close = () => resolve(undefined)
        })
        return { next: () => events[taken++] ?? closed, close: () => close() }
      },
    },
    checkTail: { value: async () => ({ seqNum: tail, timestamp: 0 }) },
    equals: { value: () => false },
  }) as Stream
  return { remote, taken: () => taken }
}

async function openLocal(storage: Storage = memory(), clock = virtualClock()) {
  const hw = await open({ storage, clock })
  onTestFinished(() => hw.close())
  return { hw, clock, local: hw.basin('basin').stream('stream') }
}

describe('a mirror of a read', () => {
  it('that is another stream each time is opened after pauses', async () => {
    const { local, clock } = await openLocal()
    let opened = 0
    const remote = Object.create(local, {
      openCursor: {
        value: async (): Promise<RecordCursor> => {
          // A mirror that goes on at once would never let the test end it.
          if (++opened === 1_000) throw new Error('opened too often')
          const tail = { seqNum: 0, timestamp: 0 }
          const event = { kind: 'heartbeat', timestamp: 0, tail } as const
          return { streamId: `${opened}`, next: async () => event, close: () => {} }
        },
      },
      equals: { value: () => false },
    }) as Stream
    const copy = mirror(remote, local)
    await clock.advance('1m')
    expect(opened).toBeLessThan(15)
    await copy.close()
  })

  it('that skips records stops with the gap', async () => {
    const { local, clock } = await openLocal()
    const { remote } = scripted(local, [batch(records(0, 10)), batch(records(14, 20), 20)])
    const copy = mirror(remote, local)
    expect(await until(copy, 'stopped', clock)).toMatchObject({
      reason: 'trimmed',
      gap: { from: 10, to: 14 },
    })
    expect((await contentOf(local)).end).toBe(10)
    await copy.close()
  })

  it('that skips records within a batch stores nothing of that batch', async () => {
    const { local, clock } = await openLocal()
    const { remote } = scripted(local, [batch([...records(0, 3), ...records(5, 8)], 8)])
    const copy = mirror(remote, local)
    expect(await until(copy, 'stopped', clock)).toMatchObject({ gap: { from: 0, to: 5 } })
    expect((await contentOf(local)).end).toBe(0)
    await copy.close()
  })

  it('shows how far it is, up to the tail that the server tells', async () => {
    const { local, clock } = await openLocal()
    const { remote } = scripted(local, [batch(records(0, 100)), batch(records(100, 300))])
    const copy = mirror(remote, local)
    await until(copy, 'catching-up', clock)
    expect(copy.state).toEqual({ kind: 'catching-up', position: 300, tail: 10_000 })
    await copy.close()
  })

  it.each([
    ['no tail', batch(records(0, 100)), { kind: 'catching-up', position: 100, tail: 100 }],
    ['a later tail', batch(records(0, 100), 200), { kind: 'catching-up', position: 100, tail: 200 }],
    ['its end as the tail', batch(records(0, 100), 100), { kind: 'live' }],
  ])('that has a batch with %s is live once it reaches the tail', async (_, first, expected) => {
    const { local, clock } = await openLocal()
    const { remote } = scripted(local, [first], 100)
    const copy = mirror(remote, local)
    await clock.settle()
    expect(copy.state).toEqual(expected)
    await copy.close()
  })

  it('takes no more than the local storage keeps up with', { tags: ['slow'] }, async () => {
    const storage = gated(memory())
    const { local, clock } = await openLocal(storage)
    storage.holding = true
    const events = Array.from({ length: 100 }, (_, i) =>
      batch([{ ...record(i), body: new Uint8Array(900_000) }]),
    )
    const { remote, taken } = scripted(local, events)
    const copy = mirror(remote, local)
    await clock.settle()
    expect(taken()).toBeGreaterThan(2)
    expect(taken()).toBeLessThan(20)
    storage.holding = false
    storage.release()
    await clock.settle()
    expect((await contentOf(local)).end).toBe(100)
    await copy.close()
  })
})

it('a mirror of an encrypted stream decrypts it with the key of the handle', async () => {
  const encryptionKey = new Uint8Array(32).fill(7)
  const server = await openServer()
  await server.hw.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const origin = server.hw.basin('basin').stream('stream', { encryptionKey })
  await origin.append(['secret', 'too'])
  const { remote, remoteBasin, local, start } = await openDevice(server)
  const withKey = remoteBasin.stream('stream', { encryptionKey })
  await until(start({}, { remote: withKey, local }), 'live', server.clock)
  expect(await contentOf(local)).toEqual(await contentOf(origin))
  const without = start({}, { remote, local: local.sibling('other') })
  expect(await until(without, 'stopped', server.clock)).toMatchObject({
    reason: 'failed',
    error: { code: 'encryption_key_invalid' },
  })
})

it('a mirror continues with another access token when its own ends during the read', async () => {
  const server = await openServer({}, { auth: 'token' })
  const { hw, clock, stream } = server
  await stream.append('a')
  const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] } as const
  const tokens = [
    await hw.issueAccessToken({ id: '1', scope }),
    await hw.issueAccessToken({ id: '2', scope }),
  ]
  const { start, local } = await openDevice(server, memory(), { getToken: () => tokens[0]! })
  const copy = start()
  await until(copy, 'live', clock)
  tokens.shift()
  await hw.revokeAccessToken('1')
  await stream.append('b')
  await clock.advance('5s')
  expect(copy.state.kind).toBe('live')
  expect(await contentOf(local)).toEqual(await contentOf(stream))
})
