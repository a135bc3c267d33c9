import { afterEach, expect, it } from 'vitest'
import { type CipherSuite, fenceRecord, type RecordInput, type Stream } from '../../../src/index.ts'
import { BATCH_ENCODED_BYTES_MAX, MIB } from '../../../src/model/limits.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { SEALED_BLOCK_BYTES_MAX } from '../../../src/storage/sealed-block.ts'
import { encodeReadBatch } from '../../../src/wire/proto-records.ts'
import { gated, testStorage, wrapped } from '../../support/index.ts'
import { aegis, aesOfNode, type EncryptedEngine, openEncrypted, outcome, SUITES } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

const FRAME_BYTES_MAX = 2_097_151
const TINY: [Uint8Array, Uint8Array] = [new Uint8Array([1]), new Uint8Array([2])]

/**
 * As many records of tiny headers as fit: 8 bytes encoded for 4 metered, the longest encoding for a metered
 * size.
 */
function tinyHeaders(records: number): RecordInput[] {
  const headers = Math.floor((BATCH_ENCODED_BYTES_MAX / records - 26) / 8)
  return Array.from({ length: records }, () => ({ headers: Array(headers).fill(TINY) }))
}

const LONGEST: [string, CipherSuite, () => RecordInput[]][] = [
  ['tiny headers in one record', aesOfNode, () => tinyHeaders(1)],
  ['tiny headers in 1,000 records', aesOfNode, () => tinyHeaders(1000)],
]

it.each([
  ...SUITES.flatMap(([name, suite]): typeof LONGEST => [
    [`1,000 records without content, ${name}`, suite, () => Array.from({ length: 1000 }, () => '')],
    [
      `1,000 records of 1,000 bytes, ${name}`,
      suite,
      () => Array.from({ length: 1000 }, () => 'x'.repeat(1000)),
    ],
    [`1 MiB in one record, ${name}`, suite, () => [new Uint8Array(MIB - 8)]],
  ]),
  ...LONGEST,
])('%s are read as on a plain stream', async (_, suite, make) => {
  const sizes: number[] = []
  const storage = gated(testStorage())
  storage.onAppend = ({ block }) => sizes.push(block.data.length)
  engine = await openEncrypted(suite, { storage })
  const records = make()
  const following = engine.with().follow({ seqNum: 0 }, { as: 'bytes' }).batches()
  const live = following.next()
  await engine.clock.settle()
  await engine.stream.append(records)
  await engine.with().append(records)
  const plain = await engine.stream.readBatch({ seqNum: 0 })
  const stored = await engine.with().readBatch({ seqNum: 0 })
  expect(Buffer.compare(stored.data, plain.data)).toBe(0)
  expect(stored.meteredBytes).toBe(plain.meteredBytes)
  const { value } = await live
  expect(Buffer.compare(value!.data, plain.data)).toBe(0)
  expect(encodeReadBatch(value!).length).toBeLessThanOrEqual(FRAME_BYTES_MAX)
  expect(sizes[1]!).toBeLessThanOrEqual(SEALED_BLOCK_BYTES_MAX)
  await following.return?.()
})

it('the longest blocks barely exceed the limit of plain ones', () => {
  expect(SEALED_BLOCK_BYTES_MAX - BATCH_ENCODED_BYTES_MAX).toBeLessThan(4096)
})

it('batches of the longest encodings still fit a frame, as on a plain stream', async () => {
  engine = await openEncrypted(aesOfNode)
  for (const records of [tinyHeaders(1), ['x'.repeat(50)]]) {
    await engine.stream.append(records)
    await engine.with().append(records)
  }
  const sizes = async (stream: Stream) => {
    const all: number[] = []
    for await (const { data } of stream.read({ seqNum: 0, count: 2 }).batches()) all.push(data.length)
    return all
  }
  expect(await sizes(engine.with())).toEqual(await sizes(engine.stream))
  expect(await sizes(engine.with())).toHaveLength(2)
})

it.each([
  ['aes-256-gcm', aesOfNode, 'max assignable sequence number is 4294967295; attempted 4294967296'],
  ['aegis-256', aegis, undefined],
] as const)('%s has its ceiling of sequence numbers, commands exempt', async (_, suite, refusal) => {
  let isFar = false
  const appends: AppendRequest[] = []
  const storage = wrapped(testStorage(), { shared: false }, (session) => ({
    head: async (logId) => {
      const head = await session.head(logId)
      return isFar ? { ...head!, tail: { seqNum: 2 ** 32 - 1, timestamp: 0 } } : head
    },
    append: async (request) => void appends.push(request),
  }))
  engine = await openEncrypted(suite, { storage })
  isFar = true
  expect(await outcome(engine.with().append('a'))).toBe('ok')
  const expected = refusal === undefined ? 'ok' : `422 invalid: ${refusal}`
  expect(await outcome(engine.with().append('b'))).toBe(expected)
  expect(await outcome(engine.with().append([fenceRecord('t'), 'b']))).toMatch(expected.slice(0, 3))
  expect(await outcome(engine.with().append(fenceRecord('t')))).toBe('ok')
  expect(appends).toHaveLength(refusal === undefined ? 4 : 2)
})
