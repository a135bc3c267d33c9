import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bodies } from '../support/index.ts'
import { connectUnreliably, failureOf, whileTimePasses } from './network.ts'

const COUNT = 300

/** Bodies of 200 bytes, so that they take several responses of the unreliable network. */
function body(i: number): string {
  return `${i}`.padEnd(200, '.')
}

describe.each(['frames', 'events'] as const)('read sessions in %s', (form) => {
  async function connected() {
    if (form === 'frames') return connectUnreliably()
    vi.stubGlobal('WorkerGlobalScope', class {})
    onTestFinished(() => void vi.unstubAllGlobals())
    return connectUnreliably({ headerPrefix: 's2' })
  }

  it('continue after the last record, without gaps and repetitions', async () => {
    const { clock, network, stream, ofEngine, requests } = await connected()
    for (let i = 0; i < COUNT; i++) await ofEngine.append(body(i))
    for (let nth = 1; nth <= 3; nth++) network.cut(100 + 20_000 * nth, { nth })
    const records = await whileTimePasses(clock, stream.read().toArray())
    expect(records.map(({ seqNum }) => seqNum)).toEqual(Array.from({ length: COUNT }, (_, i) => i))
    expect(requests.length).toBeGreaterThan(1)
  })

  it('keep their bounds when they continue', async () => {
    const { clock, network, stream, ofEngine } = await connected()
    for (let i = 0; i < COUNT; i++) await ofEngine.append(body(i))
    network.cut(30_000, { nth: 1 })
    const counted = await whileTimePasses(clock, stream.read({ seqNum: 10, count: 250 }).toArray())
    expect([counted[0]!.seqNum, counted.length]).toEqual([10, 250])
    network.cut(30_000, { nth: 1 })
    const bytes = 208 * 240
    const metered = await whileTimePasses(clock, stream.read({ bytes }).toArray())
    expect(metered).toHaveLength(240)
  })

  it('follow across lost connections', async () => {
    const { clock, network, stream, ofEngine } = await connected()
    network.cut(5_000)
    const seen: string[] = []
    const following = (async () => {
      for await (const record of stream.follow({ count: 60 })) seen.push(record.body)
    })()
    await clock.settle()
    for (let i = 0; i < 60; i++) {
      await ofEngine.append(body(i))
      if (i % 7 === 0) await clock.advance(500)
    }
    await whileTimePasses(clock, following)
    expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => body(i)))
  })

  it('end if another stream has taken the name meanwhile, although it has more records', async () => {
    const { clock, engine, network, stream, ofEngine } = await connected()
    await ofEngine.append('a'.repeat(5_000))
    network.cut(8_000, { nth: 1 })
    const seen: string[] = []
    const following = stream.follow({ seqNum: 0 })
    const reading = async () => {
      for await (const { body } of following) seen.push(body[0]!)
    }
    const failure = failureOf(reading())
    await clock.settle()
    await ofEngine.append('b'.repeat(5_000))
    await ofEngine.delete()
    await engine.basin('basin').createStream('stream')
    await ofEngine.append(['new', 'newer', 'newest'])
    expect(await whileTimePasses(clock, failure)).toMatchObject({ code: 'stream_deleted' })
    expect(seen).toEqual(['a'])
  })

  it('are not complete if another stream ends where the connection was lost', async () => {
    const { clock, engine, network, stream, ofEngine } = await connected()
    for (const body of ['a', 'b']) await ofEngine.append(body.repeat(600_000))
    network.cut(1_000_000, { nth: 1 })
    const failure = failureOf(stream.read().toArray())
    await clock.settle()
    await ofEngine.delete()
    await engine.basin('basin').createStream('stream')
    await ofEngine.append('new')
    expect(await whileTimePasses(clock, failure)).toMatchObject({ code: 'stream_deleted' })
  })
})

it.each([
  ['svc', 's2'],
  ['s2', 'svc'],
] as const)('with the header prefix %s, a client sends no other', async (headerPrefix, other) => {
  const { stream, requests } = await connectUnreliably({ headerPrefix })
  await stream.append('a')
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual(['a'])
  const headers = requests.map((request) => [...request.headers].join())
  expect(headers.filter((text) => text.includes(`${headerPrefix}-basin,basin`))).toHaveLength(requests.length)
  expect(headers.filter((text) => text.includes(`${other}-`) || text.includes(`${other}s/`))).toEqual([])
  expect(headers.filter((text) => text.includes(`content-type,${headerPrefix}s/proto`))).toHaveLength(1)
})

describe('a read session', () => {
  it('is resumed after 30 seconds of silence', async () => {
    const { clock, network, requests, stream, ofEngine } = await connectUnreliably()
    const following = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    const first = following.next()
    await ofEngine.append('a')
    await clock.settle()
    expect((await first).value?.body).toBe('a')
    const second = following.next()
    await clock.advance('10m')
    expect(requests).toHaveLength(1)
    await ofEngine.append('b')
    expect((await second).value?.body).toBe('b')
    network.heal()
    await following.return()
  })

  it('starts where the first response said, although nothing was appended before it was lost', async () => {
    const { clock, network, stream, ofEngine } = await connectUnreliably()
    await ofEngine.append('before')
    // The frame of a heartbeat arrives, and nothing else.
    network.cut(20, { nth: 1 })
    const events = stream.follow().events()
    expect((await events.next()).value).toMatchObject({ kind: 'heartbeat', tail: { seqNum: 1 } })
    const next = events.next()
    await ofEngine.append('between the connections')
    await clock.advance('1m')
    const { value } = await next
    expect(value?.kind === 'batch' && bodies(value.batch)).toEqual(['between the connections'])
    await events.return()
  })

  it('ends when its stream is deleted', async () => {
    const { clock, stream, ofEngine } = await connectUnreliably()
    const following = failureOf(stream.follow().toArray())
    await clock.settle()
    await ofEngine.delete()
    expect(await following).toMatchObject({ code: 'stream_deleted', message: 'the stream was deleted' })
  })

  it('never continues in another stream of the same name', async () => {
    const { clock, engine, network, stream, ofEngine } = await connectUnreliably()
    await ofEngine.append(['a', 'b'])
    network.cut(0, { nth: 2 })
    network.cut(60, { nth: 1 })
    const following = failureOf(stream.follow({ seqNum: 0 }).toArray())
    await clock.settle()
    await ofEngine.delete()
    await engine.basin('basin').createStream('stream')
    expect(await whileTimePasses(clock, following)).toMatchObject({ message: 'the stream was deleted' })
  })

  it('fails after as many connections without progress as the options allow', async () => {
    const { clock, network, requests, stream } = await connectUnreliably({ resumes: 3 })
    const following = failureOf(stream.follow().toArray())
    await clock.settle()
    expect(requests).toHaveLength(1)
    network.cut(0, { nth: 1 })
    network.drop()
    const more = failureOf(stream.follow().toArray())
    expect(await whileTimePasses(clock, more)).toMatchObject({ code: 'unavailable' })
    network.heal()
    void following
  })

  it('is freed at once when its consumer leaves', async () => {
    const { clock, engine, stream } = await connectUnreliably()
    const following = stream.follow().events()
    await following.next()
    const waiting = following.next()
    await clock.settle()
    expect(engine.stats().openReads).toBe(1)
    await following.return()
    expect(await waiting).toEqual({ done: true, value: undefined })
    await clock.settle()
    expect(engine.stats().openReads).toBe(0)
  })

  it('reads on without a limit of time while heartbeats arrive', async () => {
    const { clock, requests, stream, ofEngine } = await connectUnreliably()
    const following = stream.follow()[Symbol.asyncIterator]()
    const next = following.next()
    await clock.advance('1h')
    await ofEngine.append('a')
    expect((await next).value?.body).toBe('a')
    expect(requests).toHaveLength(1)
    await following.return()
  })

  it('waits as many milliseconds as asked for, rounded up to seconds', async () => {
    const { clock, stream } = await connectUnreliably()
    const waiting = stream.follow({ waitMs: 1_500 }).toArray()
    let isOver = false
    void waiting.then(() => {
      isOver = true
    })
    await clock.advance(1_999)
    expect(isOver).toBe(false)
    await clock.advance(1)
    expect(await waiting).toEqual([])
  })
})
