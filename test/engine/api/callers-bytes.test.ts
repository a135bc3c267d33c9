import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine, RecordInput, Stream } from '../../../src/index.ts'
import { closeRecord, fenceRecord, trimRecord } from '../../../src/index.ts'
import { MIB } from '../../../src/model/limits.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import {
  type GatedStorage,
  gated,
  openEngine,
  readAll,
  type TestEngine,
  testStorage,
} from '../../support/index.ts'

let storage: GatedStorage
let engine: TestEngine
let hw: Engine
let stream: Stream
beforeEach(async () => {
  storage = gated(testStorage())
  engine = await openEngine({ storage, limits: { appendInFlightBytes: 2 * MIB, sessionInFlightBytes: MIB } })
  hw = engine.hw
  stream = engine.stream
})

/** Calls with a record of one header and a body, and changes all of its bytes as soon as the call returns. */
function reusing<Result>(
  call: (record: { body: Uint8Array; headers: [Uint8Array, Uint8Array][] }) => Result,
): Result {
  const [name, value, body] = ['name', 'value', 'x'.repeat(100)].map((text) => new TextEncoder().encode(text))
  const result = call({ body: body!, headers: [[name!, value!]] })
  for (const bytes of [name!, value!, body!]) bytes.fill(0)
  return result
}

/** The storage rejects the next two appends as if another engine had appended. */
function conflictTwice(): void {
  let conflicts = 0
  storage.onAppend = () => {
    if (conflicts++ < 2) throw new StorageConflict('another head')
  }
}

const encrypted = () => {
  const encryptionKey = new Uint8Array(32).fill(1)
  return hw.basin('encrypted').stream('stream', { encryptionKey })
}
const ALL = { basins: { prefix: '' }, streams: { prefix: '' } }

/** Each appends a record of `reusing` to the stream that it returns. */
const WAYS: readonly (readonly [way: string, append: () => Promise<Stream>])[] = [
  [
    'that creates its stream',
    async () => {
      const created = hw.basin('basin').stream('created')
      await reusing((record) => created.append(record))
      return created
    },
  ],
  [
    'of a batch',
    async () => {
      await reusing((record) => stream.append(['first', record, 'last']))
      return stream
    },
  ],
  [
    'that waits for bytes in flight',
    async () => {
      storage.holding = true
      const large = [1, 2].map(() => stream.append('y'.repeat(MIB - 8)))
      const waiting = reusing((record) => stream.append(record))
      storage.holding = false
      storage.release()
      await Promise.all([...large, waiting])
      return stream
    },
  ],
  [
    'that conflicts after it was passed to the storage',
    async () => {
      await stream.append('first')
      conflictTwice()
      await reusing((record) => stream.append(record))
      return stream
    },
  ],
  [
    'with a token, which is looked up first',
    async () => {
      const token = await hw.issueAccessToken({ id: 'writer', scope: { ...ALL, ops: ['append'] } })
      await reusing((record) => hw.as(token).basin('basin').stream('stream').append(record))
      return stream
    },
  ],
  [
    'to an encrypted stream',
    async () => {
      await hw.createBasin('encrypted', { streamCipher: 'aes-256-gcm' })
      await reusing((record) => encrypted().append(record))
      return encrypted()
    },
  ],
  [
    'of a session',
    async () => {
      await using session = await stream.appendSession()
      await reusing((record) => session.submit(record))
      return stream
    },
  ],
  [
    'of a session, that waits for bytes in flight',
    async () => {
      await using session = await stream.appendSession()
      storage.holding = true
      await session.submit('y'.repeat(MIB - 8))
      const waiting = reusing((record) => session.submit(record))
      storage.holding = false
      storage.release()
      await waiting
      return stream
    },
  ],
  [
    'of a producer',
    async () => {
      await using producer = stream.producer()
      await reusing((record) => producer.submit(record))
      return stream
    },
  ],
]

describe('an append whose bytes are changed when the call has returned', () => {
  it.each(WAYS)('stores what they were: %s', async (_, append) => {
    const appended = await append()
    const found: unknown[] = []
    for await (const { headers, body } of appended.read()) if (headers.length > 0) found.push([headers, body])
    expect(found).toEqual([[[['name', 'value']], 'x'.repeat(100)]])
  })

  it.each<[string, () => RecordInput[]]>([
    ['short texts', () => ['a', '', 'é']],
    ['long texts', () => ['x'.repeat(10_000), 'y'.repeat(100)]],
    ['bytes', () => [new Uint8Array([65, 66]), new Uint8Array(0)]],
    ['headers and a timestamp', () => [{ body: 'a', headers: [['n', 'v']], timestamp: 5 }, { body: 'b' }]],
    ['commands', () => [fenceRecord('token'), trimRecord(0), closeRecord()]],
  ])('is followed as it is stored: %s', async (_, inputs) => {
    const batches = stream.follow({ seqNum: 0, waitMs: 60_000 }, { as: 'bytes' }).batches()
    const live = batches.next()
    await engine.clock.settle()
    const given = inputs()
    const appending = stream.append(given)
    for (const input of given) if (input instanceof Uint8Array) input.fill(0)
    const other = hw.basin('basin').stream('other').append('z'.repeat(100))
    await Promise.all([appending, other])
    const { value } = await live
    await batches.return()
    expect(value!.records).toEqual((await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records)
  })

  it('may append in a getter of its record', async () => {
    const other = hw.basin('basin').stream('other')
    let nested: Promise<unknown> | undefined
    const record = {
      get body() {
        nested ??= other.append('nested')
        return 'outer'
      },
    }
    await stream.append(['first', record])
    await nested
    expect([await readAll(stream), await readAll(other)]).toEqual([['first', 'outer'], ['nested']])
  })
})

function transferred(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

/** Not in the types of ES2023. */
const resizable = (length: number) =>
  new (
    ArrayBuffer as unknown as new (
      length: number,
      options: object,
    ) => ArrayBuffer & { resize(length: number): void }
  )(length, { maxByteLength: length })

function shrunk(): Uint8Array {
  const buffer = resizable(8)
  const bytes = new Uint8Array(buffer, 4, 4)
  buffer.resize(2)
  return bytes
}

describe('an array without its bytes', () => {
  it.each<[string, string, (bytes: Uint8Array) => RecordInput]>([
    ['a record', 'body', (bytes) => bytes],
    ['a body', 'body', (bytes) => ({ body: bytes })],
    ['the name of a header', 'headers', (bytes) => ({ headers: [[bytes, 'value']] })],
    ['the value of a header', 'headers', (bytes) => ({ headers: [['name', bytes]] })],
  ])('is rejected as %s', async (_, field, recordOf) => {
    for (const bytesOf of [() => transferred(3), () => transferred(0), () => transferred(100_000), shrunk]) {
      const producer = stream.producer()
      const calls = [
        stream.append(['before', recordOf(bytesOf())]),
        stream.appendSession().then((session) => session.submit(recordOf(bytesOf()))),
        producer.submit(recordOf(bytesOf())),
      ]
      const rejected = { code: 'invalid', field }
      await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(rejected)))
      await producer.close()
    }
    expect((await stream.checkTail()).seqNum).toBe(0)
  })

  it('is rejected as an encryption key', async () => {
    await hw.basin('basin').reconfigure({ streamCipher: 'aes-256-gcm' })
    const target = hw.basin('basin').stream('encrypted', { encryptionKey: transferred(32) })
    const expected = { code: 'encryption_key_invalid', field: 'encryptionKey' }
    await expect(target.append('a')).rejects.toMatchObject(expected)
  })
})

it('accepts empty arrays, and arrays that follow the length of their buffer', async () => {
  const buffer = resizable(8)
  const tracking = new Uint8Array(buffer)
  tracking.set([97, 98])
  buffer.resize(2)
  await stream.append([tracking, new Uint8Array(0), { headers: [['name', new Uint8Array(0)]] }])
  expect(await readAll(stream)).toEqual(['ab', '', ''])
})
