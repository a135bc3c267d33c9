import { describe, expect, it } from 'vitest'
import { readableOf } from '../../../src/api/web-streams.ts'
import { codeOf, gated, openEngine, outcomeOf, readAll, testStorage } from '../../support/index.ts'

const IN_FLIGHT_BYTES = 1_048_576

describe('a readable stream', () => {
  it('yields stored records, then those that are appended, until it is cancelled', async () => {
    const engine = await openEngine()
    const { stream, hw, clock } = engine
    await stream.append(['a', 'b'])
    const reader = stream.readable({ seqNum: 0 }).getReader()
    const read = async () => (await reader.read()).value?.body
    expect([await read(), await read()]).toEqual(['a', 'b'])
    const next = read()
    await stream.append('c')
    expect(await next).toBe('c')
    await reader.cancel()
    await clock.settle()
    expect(hw.stats()).toMatchObject({ openReads: 0, openSessions: 0 })
  })

  it('takes one item ahead of its reader, and ends the source when it is cancelled', async () => {
    let taken = 0
    let hasEnded = false
    async function* numbers() {
      try {
        for (;;) yield taken++
      } finally {
        hasEnded = true
      }
    }
    const reader = readableOf(numbers()).getReader()
    for (let read = 0; read < 5; read++) {
      expect((await reader.read()).value).toBe(read)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      expect(taken).toBe(read + 2)
    }
    await reader.cancel()
    expect(hasEnded).toBe(true)
  })
})

describe('a writable stream', () => {
  it('appends records and batches in order, and is closed when all are durable', async () => {
    const engine = await openEngine()
    const { stream } = engine
    const writer = stream.writable().getWriter()
    for (const chunk of ['a', ['b', 'c'], { body: 'd' }]) void writer.write(chunk)
    await writer.close()
    expect(await readAll(stream)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('applies back-pressure while appends are in flight', async () => {
    const storage = gated(testStorage())
    const engine = await openEngine({ storage, limits: { sessionInFlightBytes: IN_FLIGHT_BYTES } })
    const { stream, clock } = engine
    const writer = stream.writable().getWriter()
    await writer.ready
    storage.holding = true
    await writer.write(new Uint8Array(IN_FLIGHT_BYTES - 100))
    let isWritten = false
    const second = writer.write(new Uint8Array(100_000)).then(() => {
      isWritten = true
    })
    await clock.settle()
    expect({ isWritten, desired: writer.desiredSize }).toEqual({ isWritten: false, desired: 0 })
    storage.holding = false
    storage.release()
    await second
    await writer.close()
    expect((await stream.checkTail()).seqNum).toBe(2)
  })

  it('reports the failure of a write that was not awaited when it is closed', async () => {
    const engine = await openEngine()
    const { stream, clock } = engine
    const writer = stream.writable({ fencingToken: 'mine' }).getWriter()
    writer.closed.catch(() => {})
    await writer.write('a')
    await clock.settle()
    expect(await outcomeOf(writer.close())).toBe('fencing_token_mismatch')
    expect((await stream.checkTail()).seqNum).toBe(0)
  })

  it('still appends what was written before it is aborted', async () => {
    const engine = await openEngine()
    const { stream } = engine
    const writer = stream.writable().getWriter()
    await writer.write('a')
    await writer.abort(new Error('enough'))
    expect(await readAll(stream)).toEqual(['a'])
    expect(await writer.write('b').catch(codeOf)).toBe('Error: enough')
  })

  it('is the end of a pipe', async () => {
    const engine = await openEngine()
    const { stream, hw } = engine
    await stream.append(['a', 'b', 'c'])
    const copy = hw.basin('basin').stream('copy')
    const bodiesOnly = new TransformStream({ transform: ({ body }, sink) => sink.enqueue(body) })
    await stream.readable({ seqNum: 0, count: 3 }).pipeThrough(bodiesOnly).pipeTo(copy.writable())
    expect(await readAll(copy)).toEqual(['a', 'b', 'c'])
  })
})

describe('the streams of a JSON view', () => {
  it('append values and yield them with their sequence numbers', async () => {
    const engine = await openEngine()
    const { stream, hw, clock } = engine
    const values = stream.json<{ readonly n: number }>()
    const writer = values.writable().getWriter()
    for (const n of [1, 2]) void writer.write({ n })
    await writer.close()
    const reader = values.readable({ seqNum: 0 }).getReader()
    const read = async () => (await reader.read()).value
    expect(await read()).toMatchObject({ seqNum: 0, value: { n: 1 } })
    expect(await read()).toMatchObject({ seqNum: 1, value: { n: 2 } })
    const next = read()
    await values.append({ n: 3 })
    expect(await next).toMatchObject({ seqNum: 2, value: { n: 3 } })
    await reader.cancel()
    await clock.settle()
    expect(hw.stats()).toMatchObject({ openReads: 0, openSessions: 0 })
  })

  it('reject a value that is not JSON, after what was written before it, and end the session', async () => {
    const engine = await openEngine()
    const { stream, hw, clock } = engine
    const writer = stream.json().writable().getWriter()
    writer.closed.catch(() => {})
    await writer.write('a')
    expect(await outcomeOf(writer.write(Number.NaN))).toBe('invalid')
    expect(await outcomeOf(writer.write('b'))).toBe('invalid')
    await clock.settle()
    expect(await readAll(stream)).toEqual(['"a"'])
    expect(hw.stats()).toMatchObject({ openSessions: 0 })
  })

  it.each(['the writer', 'its signal', 'the engine'])(
    'stop waiting for an asynchronous schema when %s ends them',
    async (which) => {
      const engine = await openEngine()
      const { stream, hw, clock } = engine
      const validate = () => new Promise<never>(() => {})
      const stuck = { '~standard': { version: 1, vendor: 'test', validate } } as const
      const ending = new AbortController()
      const enough = new Error('enough')
      const writer = stream.json(stuck).writable({ signal: ending.signal }).getWriter()
      writer.closed.catch(() => {})
      const written = writer.write('a').catch(codeOf)
      await clock.settle()
      if (which === 'its signal') ending.abort(enough)
      else await (which === 'the writer' ? writer.abort(enough) : hw.close())
      expect(await written).toBe(which === 'the engine' ? 'closed' : 'Error: enough')
    },
  )
})
