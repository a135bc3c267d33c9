import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { codeOf, readAll } from '../support/engine.ts'

const batch = (seq: number) => ({ producer: { id: 'p', epoch: 0, seq } })

/** A client of a handler behind a network that can lose responses or be another server. */
async function openClient(
  network: (request: Request, send: (request: Request) => Promise<Response>) => Promise<Response>,
) {
  const engine = await open({ storage: memory() })
  const handler = createHandler(engine, { auth: 'none' })
  const send = async (request: Request) => handler(request)
  const requests: Request[] = []
  const client = await connect({
    url: 'http://localhost',
    random: () => 0,
    fetch: async (request) => {
      if (request.method === 'POST' && request.url.endsWith('/records')) requests.push(request.clone())
      return network(request, send)
    },
  })
  onTestFinished(async () => {
    await client.close()
    await engine.close()
  })
  const stream = client.basin('basin').stream('stream')
  return { stream, own: engine.basin('basin').stream('stream'), requests }
}

describe('a client with a producer', () => {
  it('repeats a batch whose response was lost, and gets the ack of the first one', async () => {
    let losing = false
    const { stream, own } = await openClient(async (request, send) => {
      const response = await send(request)
      if (!losing) return response
      losing = false
      throw new TypeError('connection reset')
    })
    await stream.append('a', batch(0))
    losing = true
    expect(await stream.append('b', batch(1))).toMatchObject({ start: { seqNum: 1 }, duplicate: true })
    expect(await readAll(own)).toEqual(['a', 'b'])
  })

  it('repeats the first batch too', async () => {
    let losing = true
    const { stream, own } = await openClient(async (request, send) => {
      const isAppend = request.method === 'POST' && request.url.endsWith('/records')
      const response = await send(request)
      if (!losing || !isAppend || !response.ok) return response
      losing = false
      throw new TypeError('connection reset')
    })
    expect(await stream.append('a', batch(0))).toMatchObject({ start: { seqNum: 0 }, duplicate: true })
    expect(await readAll(own)).toEqual(['a'])
  })

  it.each([
    ['a producer', batch(0)],
    ['a producer and the next sequence number', { ...batch(0), matchSeqNum: 1 }],
    ['a stream sequence', { streamSeq: '1' }],
  ])('stores nothing on a server that ignores the header of %s', async (_, options) => {
    let isIgnored = true
    const { stream, own } = await openClient(async (request, send) => {
      if (isIgnored) request.headers.delete('headwater-append')
      return send(request)
    })
    await stream.append('plain')
    const unsupported = { code: 'unsupported', field: 'producer', mayHaveEffects: false }
    await expect(stream.append('a', options)).rejects.toMatchObject(unsupported)
    expect(await readAll(own)).toEqual(['plain'])
    isIgnored = false
    expect(await stream.append('a', options)).toMatchObject({ start: { seqNum: 1 } })
    expect(await readAll(own)).toEqual(['plain', 'a'])
  })

  it.each([401, 403])(
    'does not know whether a batch was stored if its repetition gets %i',
    async (status) => {
      let isLost = false
      const { stream, own } = await openClient(async (request, send) => {
        if (isLost) return new Response(null, { status })
        await send(request)
        isLost = true
        throw new TypeError('connection reset')
      })
      await own.append('a')
      expect(await stream.append('b', batch(0)).catch((error) => error)).toMatchObject({
        mayHaveEffects: true,
      })
      expect(await readAll(own)).toEqual(['a', 'b'])
    },
  )

  it('cannot use it in a session', async () => {
    const { stream } = await openClient((request, send) => send(request))
    await stream.append('a')
    const session = await stream.appendSession()
    expect(await session.submit('b', batch(0)).catch(codeOf)).toBe('unsupported')
    await session.close().catch(() => {})
  })
})

describe('a client that follows', () => {
  it('opens no further connection once the stream is closed', async () => {
    let reads = 0
    const { stream } = await openClient((request, send) => {
      if (request.method === 'GET') reads++
      return send(request)
    })
    await stream.append('a')
    const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    await following.next()
    const before = reads
    await stream.close()
    expect((await following.next()).value).toMatchObject({ command: { kind: 'close' } })
    expect((await following.next()).done).toBe(true)
    expect(reads).toBe(before)
    expect(await stream.follow().toArray()).toEqual([])
    expect(await stream.readBatch({ seqNum: 2, waitMs: 60_000 })).toMatchObject({
      records: [],
      tail: { closed: true },
    })
  })
})
