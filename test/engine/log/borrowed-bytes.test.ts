import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Stream } from '../../../src/index.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { gated, openEngine, type TestEngine, testStorage } from '../../support/index.ts'

const KEY = new Uint8Array(32).fill(1)
const MIB = 1024 * 1024

let storage: ReturnType<typeof gated>
let engine: TestEngine
beforeEach(async () => {
  storage = gated(testStorage())
  engine = await openEngine({ storage, limits: { appendInFlightBytes: 2 * MIB, sessionInFlightBytes: MIB } })
})
afterEach(() => engine.hw.close())

/** Appends a record of one header and a body, and changes both as soon as the call returns. */
function appendAndReuse(
  append: (record: { body: Uint8Array; headers: [Uint8Array, Uint8Array][] }) => unknown,
) {
  const [name, value, body] = ['name', 'value', 'x'.repeat(100)].map((text) => new TextEncoder().encode(text))
  const appended = append({ body: body!, headers: [[name!, value!]] })
  for (const bytes of [name!, value!, body!]) bytes.fill(0)
  return appended
}

async function storedRecords(stream: Stream) {
  const { records } = await stream.readBatch({ seqNum: 0 })
  return records.filter(({ headers }) => headers.length > 0).map(({ headers, body }) => ({ headers, body }))
}

const STORED = [{ headers: [['name', 'value']], body: 'x'.repeat(100) }]

describe('a caller may reuse its byte arrays when an append returns', () => {
  it('to an open stream or one that it creates', async () => {
    const other = engine.hw.basin('basin').stream('other')
    await appendAndReuse((record) => other.append(record))
    expect(await storedRecords(other)).toEqual(STORED)
    await appendAndReuse((record) => other.append([record, record]))
    expect(await storedRecords(other)).toEqual([...STORED, ...STORED, ...STORED])
  })

  it('that waits for bytes in flight', async () => {
    const { stream } = engine
    storage.holding = true
    const large = [1, 2].map(() => stream.append('y'.repeat(MIB - 8)))
    const waiting = appendAndReuse((record) => stream.append(record))
    storage.holding = false
    storage.release()
    await Promise.all([...large, waiting])
    const { records } = await stream.readBatch({ seqNum: 2 })
    expect(records[0]).toMatchObject(STORED[0]!)
  })

  it('that conflicts after it was passed to the storage', async () => {
    const { stream } = engine
    await stream.append('first')
    let conflicts = 0
    storage.onAppend = () => {
      if (conflicts++ < 2) throw new StorageConflict('another head')
    }
    await appendAndReuse((record) => stream.append(record))
    expect(conflicts).toBeGreaterThan(2)
    expect(await storedRecords(stream)).toEqual(STORED)
  })

  it('after an append that conflicts', async () => {
    const { stream, clock } = engine
    await stream.append('first')
    storage.holding = true
    const first = stream.append('second')
    await clock.settle()
    let conflicts = 0
    storage.onAppend = () => {
      if (conflicts++ < 1) throw new StorageConflict('another head')
    }
    storage.holding = false
    storage.release()
    const behind = appendAndReuse((record) => stream.append(record))
    await Promise.all([first, behind])
    expect(await storedRecords(stream)).toEqual(STORED)
  })

  it('with a token, which is looked up first', async () => {
    const { hw } = engine
    const token = await hw.issueAccessToken({
      id: 'writer',
      scope: {
        basins: { prefix: '' },
        streams: { prefix: '' },
        ops: ['append', 'create-stream', 'create-basin'],
      },
    })
    const stream = hw.as(token).basin('basin').stream('stream')
    await appendAndReuse((record) => stream.append(record))
    expect(await storedRecords(engine.stream)).toEqual(STORED)
  })

  it('to an encrypted stream', async () => {
    await engine.hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
    const stream = engine.hw.basin('encrypted').stream('stream', { encryptionKey: KEY })
    await stream.append('first')
    await appendAndReuse((record) => stream.append(record))
    expect(await storedRecords(stream)).toEqual(STORED)
  })

  it('of a session', async () => {
    const session = await engine.stream.appendSession()
    await appendAndReuse((record) => session.submit(record))
    await session.close()
    expect(await storedRecords(engine.stream)).toEqual(STORED)
  })

  it('of a session, when the batch waits for bytes in flight', async () => {
    const session = await engine.stream.appendSession()
    storage.holding = true
    await session.submit('y'.repeat(MIB - 8))
    const waiting = appendAndReuse((record) => session.submit(record))
    storage.holding = false
    storage.release()
    await waiting
    await session.close()
    const { records } = await engine.stream.readBatch({ seqNum: 1 })
    expect(records[0]).toMatchObject(STORED[0]!)
  })

  it('of a session, when the batch conflicts after it was passed to the storage', async () => {
    await engine.stream.append('first')
    let conflicts = 0
    storage.onAppend = () => {
      if (conflicts++ < 2) throw new StorageConflict('another head')
    }
    const session = await engine.stream.appendSession()
    await appendAndReuse((record) => session.submit(record))
    await session.close()
    expect(conflicts).toBeGreaterThan(2)
    expect(await storedRecords(engine.stream)).toEqual(STORED)
  })

  it('of a producer', async () => {
    const producer = engine.stream.producer()
    const submitted = appendAndReuse((record) => producer.submit(record))
    await producer.close()
    await submitted
    expect(await storedRecords(engine.stream)).toEqual(STORED)
  })
})

describe('texts are stored as they were given', () => {
  const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(100))
  const bodiesFrom = async (seqNum: number) => {
    const { records } = await engine.stream.readBatch({ seqNum })
    return records.map(({ body }) => body)
  }

  it('if the appends wait for bytes in flight', async () => {
    storage.holding = true
    const large = [1, 2].map(() => engine.stream.append('y'.repeat(MIB - 8)))
    const waiting = texts.map((text) => engine.stream.append(text))
    storage.holding = false
    storage.release()
    await Promise.all([...large, ...waiting])
    expect(await bodiesFrom(2)).toEqual(texts)
  })

  it('if the appends conflict after they were passed to the storage', async () => {
    await engine.stream.append('first')
    let conflicts = 0
    storage.onAppend = () => {
      if (conflicts++ < 2) throw new StorageConflict('another head')
    }
    await Promise.all(texts.map((text) => engine.stream.append(text)))
    expect(conflicts).toBeGreaterThan(2)
    expect(await bodiesFrom(1)).toEqual(texts)
  })

  it('if a getter of a record appends, too', async () => {
    const other = engine.hw.basin('basin').stream('other')
    await other.append('first')
    await engine.stream.append('first')
    let nested: Promise<unknown> | undefined
    const record = {
      get body() {
        nested ??= other.append(texts[1]!)
        return texts[2]!
      },
    }
    await engine.stream.append([texts[0]!, record])
    await nested
    expect(await bodiesFrom(1)).toEqual([texts[0], texts[2]])
    const { records } = await other.readBatch({ seqNum: 1 })
    expect(records.map(({ body }) => body)).toEqual([texts[1]])
  })
})
