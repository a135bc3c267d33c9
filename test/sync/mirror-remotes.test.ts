import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { mirror } from '../../adapters/sync/mirror.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import type { RecordCursor } from '../../src/api/record-cursor.ts'
import { type Engine, open, type Storage, type Stream } from '../../src/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { ReadBatch, RecordBatch } from '../../src/storage/record-batch.ts'
import { gated } from '../support/gated-storage.ts'
import { contentOf, until } from './mirrored.ts'

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

  it('is live only once the read reaches the tail', async () => {
    const { local, clock } = await openLocal()
    const { remote } = scripted(local, [batch(records(0, 100))], 100)
    const copy = mirror(remote, local)
    await clock.settle()
    expect(copy.state).toEqual({ kind: 'catching-up', position: 100, tail: 100 })
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
  const { hw: server, clock } = await openLocal()
  const encryptionKey = new Uint8Array(32).fill(7)
  await server.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const origin = server.basin('basin').stream('stream', { encryptionKey })
  await origin.append(['secret', 'too'])
  const client = await connect({
    url: 'http://localhost',
    fetch: createHandler(server, { auth: 'none' }),
    clock,
  })
  const { hw } = await openLocal(memory(), clock)
  const local = hw.basin('basin').stream('stream')
  const copy = mirror(client.basin('basin').stream('stream', { encryptionKey }), local)
  await until(copy, 'live', clock)
  expect(await contentOf(local)).toEqual(await contentOf(origin))
  await copy.close()
  const without = mirror(client.basin('basin').stream('stream'), local.sibling('other'))
  expect(await until(without, 'stopped', clock)).toMatchObject({
    reason: 'failed',
    error: { code: 'encryption_key_invalid' },
  })
  await without.close()
  await client.close()
})

describe('a mirror with an access token', () => {
  async function issue(hw: Engine, id: string) {
    return hw.issueAccessToken({
      id,
      scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] },
    })
  }

  async function openServed() {
    const { hw, clock } = await openLocal()
    await hw.basin('basin').stream('stream').append('a')
    const handler = createHandler(hw, { auth: 'token' })
    const device = await openLocal(memory(), clock)
    return { hw, clock, handler, local: device.local, stream: hw.basin('basin').stream('stream') }
  }

  it('continues with another one when it ends during the read', async () => {
    const { hw, clock, handler, local, stream } = await openServed()
    const tokens = [await issue(hw, 'first'), await issue(hw, 'second')]
    const getToken = () => tokens[0]!
    const client = await connect({ url: 'http://localhost', fetch: handler, clock, getToken })
    const copy = mirror(client.basin('basin').stream('stream'), local, { random: () => 0 })
    await until(copy, 'live', clock)
    tokens.shift()
    await hw.revokeAccessToken('first')
    await stream.append('b')
    await clock.advance('5s')
    expect(copy.state.kind).toBe('live')
    expect(await contentOf(local)).toEqual(await contentOf(stream))
    await copy.close()
    await client.close()
  })

  it('stops when it ends and there is no other one', async () => {
    const { hw, clock, handler, local } = await openServed()
    const token = await issue(hw, 'only')
    const client = await connect({ url: 'http://localhost', fetch: handler, clock, token })
    const copy = mirror(client.basin('basin').stream('stream'), local)
    await until(copy, 'live', clock)
    await hw.revokeAccessToken('only')
    await clock.settle()
    expect(await until(copy, 'stopped', clock)).toMatchObject({ reason: 'denied', error: { code: 'authn' } })
    await copy.close()
    await client.close()
  })
})
