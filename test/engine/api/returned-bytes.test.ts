import { describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open, type Stream } from '../../../src/index.ts'

const BODY = new Uint8Array([1, 2, 3])

/** Overwrites the bodies and headers of records. */
function overwrite(records: readonly { body: Uint8Array; headers: readonly (readonly Uint8Array[])[] }[]) {
  for (const { body, headers } of records) for (const bytes of [body, ...headers.flat()]) bytes.fill(0xff)
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

async function written(): Promise<{ stream: Stream; [Symbol.asyncDispose](): Promise<void> }> {
  const hw = await open({ storage: memory() })
  const stream = hw.basin('basin').stream('stream')
  for (let i = 0; i < 3; i++) await stream.append([{ body: BODY, headers: [['name', BODY]] }, BODY])
  return { stream, [Symbol.asyncDispose]: () => hw.close() }
}

describe('a stream in memory', () => {
  it.each([
    [
      'read at once',
      async (stream: Stream) => (await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records,
    ],
    ['iterated', (stream: Stream) => collect(stream.read({ seqNum: 0, count: 6 }, { as: 'bytes' }))],
    [
      'followed',
      async (stream: Stream) => {
        const events = stream.follow({ tailOffset: 0, waitMs: 60_000 }, { as: 'bytes' }).events()
        expect((await events.next()).value?.kind).toBe('heartbeat')
        await stream.append({ body: BODY, headers: [['name', BODY]] })
        const { value } = await events.next()
        await events.return()
        return value?.kind === 'batch' ? value.batch.records : []
      },
    ],
  ])('changes no stored record when a caller writes to bytes that were returned: %s', async (_how, read) => {
    await using engine = await written()
    const { stream } = engine
    const before = await stream.readBatch({ seqNum: 0, count: 6 })
    const records = await read(stream)
    expect(records.at(-1)!.body).toEqual(BODY)
    overwrite(records)
    expect((await stream.readBatch({ seqNum: 0, count: 6 })).records).toEqual(before.records)
    const { records: bytes } = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
    for (const { body } of bytes) expect(body).toEqual(BODY)
  })
  it('stores and returns records without bytes after a caller has transferred the memory of some', async () => {
    await using engine = await written()
    const { stream } = engine
    await stream.append(['', { headers: [['name', '']] }])
    const read = async () => (await stream.readBatch({ tailOffset: 2 }, { as: 'bytes' })).records
    const [first, second] = [await read(), await read()]
    for (const { body } of [first[0]!, second[1]!]) structuredClone(body.buffer, { transfer: [body.buffer] })
    await stream.append(['', { body: new Uint8Array(), headers: [['name', '']] }])
    expect((await read()).map(({ body, headers }) => [body.length, headers.length])).toEqual([
      [0, 0],
      [0, 1],
    ])
  })
})

describe('positions that a caller writes to', () => {
  const producer = { id: 'producer', epoch: 0, seq: 0 }

  it.each<[string, (stream: Stream) => Promise<readonly (object | undefined)[]>]>([
    ['of an ack', async (stream) => Object.values(await stream.append('x'))],
    ['of the ack of a producer', async (stream) => Object.values(await stream.append('x', { producer }))],
    ['of a tail', async (stream) => [await stream.checkTail()]],
    ['of a batch', async (stream) => [(await stream.readBatch({ seqNum: 0 })).tail]],
    [
      'of a live batch',
      async (stream) => {
        const events = stream.follow({ tailOffset: 0, waitMs: 60_000 }).events()
        const heartbeat = await events.next()
        await stream.append('x')
        const batch = await events.next()
        await events.return()
        if (heartbeat.value?.kind !== 'heartbeat' || batch.value?.kind !== 'batch') return []
        return [heartbeat.value.tail, batch.value.batch.tail]
      },
    ],
  ])('change nothing of the stream: %s', async (_, positionsOf) => {
    await using engine = await written()
    const { stream } = engine
    const positions = await positionsOf(stream)
    const { seqNum } = await stream.checkTail()
    expect(positions.length).toBeGreaterThan(0)
    for (const position of positions) Object.assign(position!, { seqNum: 1_000, timestamp: 0 })
    expect((await stream.append('next')).start.seqNum).toBe(seqNum)
    expect((await stream.checkTail()).seqNum).toBe(seqNum + 1)
  })

  it('leave the ack of a batch as it was for its duplicates', async () => {
    await using engine = await written()
    const { stream } = engine
    for (let attempt = 0; attempt < 3; attempt++) {
      const { start, end } = await stream.append('x', { producer })
      expect([start.seqNum, end.seqNum]).toEqual([6, 7])
      Object.assign(start, { seqNum: 1_000 })
      Object.assign(end, { seqNum: 1_000 })
    }
  })
})
