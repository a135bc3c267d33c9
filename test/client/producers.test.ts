import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { codeOf, readAll } from '../support/engine.ts'
import { connectTo, connectUnreliably, failureOf, whileTimePasses } from './network.ts'

const batch = (seq: number) => ({ producer: { id: 'p', epoch: 0, seq } })

const isAppend = ({ method, url }: Request) => method === 'POST' && url.endsWith('/records')

describe('a client with a producer', () => {
  it.each([1, 2])(
    'repeats batch %i, whose response was lost, and gets the ack of the first one',
    async (nth) => {
      const { clock, network, stream, ofEngine } = await connectUnreliably()
      network.loseResponse({ nth, when: isAppend })
      const acks = [
        await whileTimePasses(clock, stream.append('a', batch(0))),
        await whileTimePasses(clock, stream.append('b', batch(1))),
      ]
      expect(acks.map(({ start }) => start.seqNum)).toEqual([0, 1])
      expect(acks[nth - 1]).toMatchObject({ duplicate: true })
      expect(await readAll(ofEngine)).toEqual(['a', 'b'])
    },
  )

  it.each([
    ['a producer', batch(0)],
    ['a producer and the next sequence number', { ...batch(0), matchSeqNum: 1 }],
    ['a stream sequence', { streamSeq: '1' }],
  ])('stores nothing on a server that ignores the header of %s', async (_, options) => {
    const engine = await open({ storage: memory() })
    const handler = createHandler(engine, { auth: 'none' })
    let isIgnored = true
    const { hw } = await connectTo((request) => {
      if (isIgnored) request.headers.delete('headwater-append')
      return handler(request)
    })
    const stream = hw.basin('basin').stream('stream')
    const own = engine.basin('basin').stream('stream')
    await stream.append('plain')
    const unsupported = { code: 'unsupported', field: 'producer', mayHaveEffects: false }
    await expect(stream.append('a', options)).rejects.toMatchObject(unsupported)
    expect(await readAll(own)).toEqual(['plain'])
    isIgnored = false
    expect(await stream.append('a', options)).toMatchObject({ start: { seqNum: 1 } })
    expect(await readAll(own)).toEqual(['plain', 'a'])
    await engine.close()
  })

  it.each([401, 403])(
    'does not know whether a batch was stored if its repetition gets %i',
    async (status) => {
      const { clock, network, stream, ofEngine } = await connectUnreliably()
      await ofEngine.append('a')
      network.loseResponse({ nth: 1, when: isAppend })
      network.respond(status, { nth: 2, when: isAppend })
      const failure = await whileTimePasses(clock, failureOf(stream.append('b', batch(0))))
      expect(failure).toMatchObject({ mayHaveEffects: true })
      expect(await readAll(ofEngine)).toEqual(['a', 'b'])
    },
  )

  it('cannot use it in a session', async () => {
    const { stream } = await connectUnreliably()
    await stream.append('a')
    const session = await stream.appendSession()
    expect(await session.submit('b', batch(0)).catch(codeOf)).toBe('unsupported')
    await session.close().catch(() => {})
  })
})

it('a client that follows opens no further connection once the stream is closed', async () => {
  const { stream, requests } = await connectUnreliably()
  await stream.append('a')
  const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
  await following.next()
  const reads = () => requests.filter(({ method }) => method === 'GET').length
  const before = reads()
  await stream.close()
  expect((await following.next()).value).toMatchObject({ command: { kind: 'close' } })
  expect((await following.next()).done).toBe(true)
  expect(reads()).toBe(before)
  expect(await stream.follow().toArray()).toEqual([])
  const batch = await stream.readBatch({ seqNum: 2, waitMs: 60_000 })
  expect(batch).toMatchObject({ records: [], tail: { closed: true } })
})
