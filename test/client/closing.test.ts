import { describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { openEngine } from '../support/index.ts'
import { connectTo, connectUnreliably, failureOf } from './network.ts'

describe('a client that is closed', () => {
  it('sends what its producers have collected, by requests', async () => {
    const { hw, stream, ofEngine } = await connectUnreliably()
    const producer = stream.producer({ lingerMs: 60_000 })
    for (const body of ['a', 'b', 'c']) await producer.submit(body)
    await hw.close()
    expect((await ofEngine.read().toArray()).map(({ body }) => body)).toEqual(['a', 'b', 'c'])
    await expect(producer.submit('d')).rejects.toMatchObject({ code: 'closed' })
  })

  it('sends what its producers have collected, over HTTP/2', { tags: ['slow'] }, async () => {
    const { hw: engine } = await openEngine()
    await using server = await serve(engine, { auth: 'none', port: 0 })
    const hw = await connect({ url: server.url })
    const producer = hw.basin('basin').stream('stream').producer({ lingerMs: 60_000, recordsMax: 2 })
    for (const body of ['a', 'b', 'c']) await producer.submit(body)
    await hw.close()
    const records = await engine.basin('basin').stream('stream').read().toArray()
    expect(records.map(({ body }) => body)).toEqual(['a', 'b', 'c'])
  })

  it('lets appends under way finish, and ends reads', async () => {
    const { hw: engine } = await openEngine()
    const handle = createHandler(engine, { auth: 'none' })
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { hw } = await connectTo(async (request) => {
      await held
      return handle(request)
    })
    const stream = hw.basin('basin').stream('stream')
    const appending = stream.append('a')
    const reading = failureOf(stream.checkTail())
    const closing = hw.close()
    expect(await reading).toMatchObject({ code: 'closed' })
    release()
    await closing
    expect((await appending).start.seqNum).toBe(0)
    expect((await engine.basin('basin').stream('stream').checkTail()).seqNum).toBe(1)
  })

  it('rejects what is not answered within five seconds, and leaves no timers', async () => {
    const { hw, engine, clock, network, stream } = await connectUnreliably()
    const follow = failureOf(stream.follow().toArray())
    await clock.settle()
    network.delay('1h')
    const tail = failureOf(stream.checkTail())
    const append = failureOf(stream.append('a'))
    const ticket = await stream.producer({ lingerMs: 60_000 }).submit('b')
    const ack = failureOf(ticket.ack())
    await clock.settle()
    const closing = hw.close()
    await clock.advance(5_000)
    await closing
    expect(await tail).toMatchObject({ code: 'closed', mayHaveEffects: false })
    expect(await append).toMatchObject({ code: 'closed', mayHaveEffects: true })
    expect(await ack).toMatchObject({ code: expect.stringMatching(/closed|discarded/) })
    expect(await follow).toMatchObject({ message: 'the client is closed' })
    expect(await failureOf(stream.append('c'))).toMatchObject({ code: 'closed' })
    await clock.settle()
    network.heal()
    await engine.close()
    expect(clock.pending).toBe(0)
  })

  it('was closed by the signal of its options', async () => {
    const control = new AbortController()
    const { hw, stream } = await connectUnreliably({ signal: control.signal })
    control.abort()
    expect(hw.closing.aborted).toBe(true)
    expect(await failureOf(stream.checkTail())).toMatchObject({ message: 'the client is closed' })
  })
})
