import { afterEach, describe, expect, it } from 'vitest'
import { type CipherSuite, fenceRecord, type RecordInput } from '../../../src/index.ts'
import { BATCH_ENCODED_BYTES_MAX, MIB } from '../../../src/model/limits.ts'
import type { AppendRequest } from '../../../src/storage/contract.ts'
import { SEALED_BLOCK_BYTES_MAX } from '../../../src/storage/sealed-block.ts'
import { encodeReadBatch } from '../../../src/wire/protobuf.ts'
import { gated, testStorage, wrapped } from '../../support/index.ts'
import { aegis, aesOfNode, CIPHERS, type EncryptedEngine, openEncrypted, outcome } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

const FRAME_BYTES_MAX = 2_097_151
const TINY: [Uint8Array, Uint8Array] = [new Uint8Array([1]), new Uint8Array([2])]

/** As many tiny headers as fit: 8 bytes encoded for 4 metered, the longest encoding for a metered size. */
const tinyHeaders = (): RecordInput[] => [
  { headers: Array(Math.floor((BATCH_ENCODED_BYTES_MAX - 26) / 8)).fill(TINY) },
]

async function expectAsOnPlainStream(suite: CipherSuite, records: RecordInput[]): Promise<void> {
  const sizes: number[] = []
  const storage = gated(testStorage())
  storage.onAppend = ({ block }) => sizes.push(block.data.length)
  engine = await openEncrypted(suite, { storage })
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
}

describe.each(CIPHERS)('%s', (_, suite) => {
  it.each<[string, () => RecordInput[]]>([
    ['1,000 records without content', () => Array(1000).fill('')],
    ['1 MiB in one record', () => [new Uint8Array(MIB - 8)]],
  ])('%s are read as on a plain stream', (_, make) => expectAsOnPlainStream(suite, make()))
})

it('the longest encoding is read as on a plain stream', { tags: ['slow'] }, () =>
  expectAsOnPlainStream(aesOfNode, tinyHeaders()),
)

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
