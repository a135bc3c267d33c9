import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RecordInput } from '../../../src/index.ts'
import { openEngine, readAll, type TestEngine } from '../../support/index.ts'

let engine: TestEngine
beforeEach(async () => {
  engine = await openEngine()
})
afterEach(() => engine.hw.close())

function transferred(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

interface ResizableBuffer extends ArrayBuffer {
  resize(length: number): void
}

/** Not in the types of ES2023. */
const resizable = (length: number) =>
  new (ArrayBuffer as unknown as new (length: number, options: object) => ResizableBuffer)(length, {
    maxByteLength: length,
  })

function shrunk(): Uint8Array {
  const buffer = resizable(8)
  const bytes = new Uint8Array(buffer, 4, 4)
  buffer.resize(2)
  return bytes
}

const BYTES: [string, () => Uint8Array][] = [
  ['whose buffer was transferred', () => transferred(3)],
  ['without elements whose buffer was transferred', () => transferred(0)],
  ['of another length whose buffer was transferred', () => transferred(100_000)],
  ['beyond the end of its buffer', shrunk],
]

const RECORDS: [string, string, (bytes: Uint8Array) => RecordInput][] = [
  ['a record', 'body', (bytes) => bytes],
  ['a body', 'body', (bytes) => ({ body: bytes })],
  ['the name of a header', 'headers', (bytes) => ({ headers: [[bytes, 'value']] })],
  ['the value of a header', 'headers', (bytes) => ({ headers: [['name', bytes]] })],
]

describe.each(RECORDS)('%s', (_, field, recordOf) => {
  it.each(BYTES)('rejects an array %s', async (_, bytesOf) => {
    const { stream } = engine
    const session = await stream.appendSession()
    const producer = stream.producer()
    const calls = [
      stream.append(['before', recordOf(bytesOf())]),
      session.submit(recordOf(bytesOf())),
      producer.submit(recordOf(bytesOf())),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'invalid', field })
    await producer.submit('after')
    await producer.close()
    expect(await readAll(stream)).toEqual(['after'])
  })
})

it('accepts empty arrays, and arrays that follow the length of their buffer', async () => {
  const buffer = resizable(8)
  const tracking = new Uint8Array(buffer)
  tracking.set([97, 98])
  buffer.resize(2)
  await engine.stream.append([tracking, new Uint8Array(0), { headers: [['name', new Uint8Array(0)]] }])
  expect(await readAll(engine.stream)).toEqual(['ab', '', ''])
})

it('a transferred encryption key is `encryption_key_invalid`', async () => {
  const { hw } = engine
  await hw.basin('basin').reconfigure({ streamCipher: 'aes-256-gcm' })
  const stream = hw.basin('basin').stream('encrypted', { encryptionKey: transferred(32) })
  await expect(stream.append('a')).rejects.toMatchObject({
    code: 'encryption_key_invalid',
    field: 'encryptionKey',
  })
})
