import { afterEach, describe, expect, it } from 'vitest'
import { type CipherSuite, fenceRecord, type HeadwaterError } from '../../../src/index.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { decodeSegments, encodeSegment, SEALED_FORMATS } from '../../../src/storage/sealed-block.ts'
import { bodies, testStorage, wrapped } from '../../support/index.ts'
import { CIPHERS, type EncryptedEngine, key, openEncrypted } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

/** Opens an engine whose storage returns blocks that the test has changed. */
async function tampered(suite: CipherSuite) {
  const storage = {
    change: (blocks: StoredBlock[]): StoredBlock[] => blocks,
    read: [] as StoredBlock[],
  }
  const inner = wrapped(testStorage(), {}, (session) => ({
    read: async (logId, range) => {
      storage.read = await session.read(logId, range)
      return storage.change(storage.read)
    },
  }))
  engine = await openEncrypted(suite, { storage: inner })
  return storage
}

function withData(change: (data: Uint8Array) => Uint8Array) {
  return ([block]: StoredBlock[]): StoredBlock[] => [{ ...block!, data: change(block!.data.slice()) }]
}

async function read(): Promise<string | string[]> {
  return engine
    .with()
    .readBatch({ seqNum: 0 })
    .then(bodies, ({ code }: HeadwaterError) => code)
}

async function positions(): Promise<string | (readonly [seqNum: number, body: string])[]> {
  return engine
    .with()
    .readBatch({ seqNum: 0 })
    .then(
      (batch) => batch.records.map(({ seqNum, body }) => [seqNum, body] as const),
      ({ code }: HeadwaterError) => code,
    )
}

describe.each(CIPHERS)('%s', (_, suite) => {
  it('detects every altered byte of the ciphertext and its frame', async () => {
    const storage = await tampered(suite)
    await engine.with().append(['a', fenceRecord('t'), { body: 'b', headers: [['k', 'v']] }])
    expect(await read()).toEqual(['a', 't', 'b'])
    const { data } = storage.read[0]!
    const [segment] = decodeSegments(data)
    const frameBytes = 14
    const sealedStart = frameBytes + segment!.skeleton.length
    for (let i = 0; i < data.length; i++) {
      if (i >= frameBytes && i < sealedStart) continue
      storage.change = withData((bytes) => {
        bytes[i]! ^= 1
        return bytes
      })
      const expected = i >= sealedStart ? ['decryption_failed'] : ['decryption_failed', 'storage']
      expect(expected).toContain(await read())
    }
  })

  it('never returns other ordinary records for an altered skeleton', async () => {
    const storage = await tampered(suite)
    await engine.with().append(['a', fenceRecord('t'), { body: 'b', headers: [['k', 'v']] }])
    await read()
    const { data } = storage.read[0]!
    const sealedStart = 14 + decodeSegments(data)[0]!.skeleton.length
    for (let i = 14; i < sealedStart; i++) {
      storage.change = withData((bytes) => {
        bytes[i]! ^= 1
        return bytes
      })
      const result = await positions()
      if (typeof result === 'string') expect(result).toBe('storage')
      else {
        const ordinary = result.filter(([seqNum]) => seqNum !== 1)
        expect(ordinary.map(([seqNum, body]) => [seqNum, body])).toEqual([
          [0, 'a'],
          [2, 'b'],
        ])
      }
    }
  })

  it('reports a block cut short anywhere as damaged', async () => {
    const storage = await tampered(suite)
    await engine.with().append('a')
    await read()
    const { length } = storage.read[0]!.data
    for (let i = 0; i < length; i++) {
      storage.change = withData((bytes) => bytes.slice(0, i))
      expect(await read()).toBe('storage')
    }
  })

  it.each<[string, (data: Uint8Array) => Uint8Array]>([
    [
      'plain records',
      () => encodeRecords([{ seqNum: 0, timestamp: 1_000_000, headers: [], body: new Uint8Array([97]) }]),
    ],
    [
      'plain records in the skeleton',
      (data) => {
        const [segment] = decodeSegments(data)
        const record = { seqNum: 0, timestamp: 1_000_000, headers: [], body: new Uint8Array([97]) }
        return encodeSegment({ ...segment!, skeleton: encodeRecords([record]), sealed: undefined })
      },
    ],
    [
      'a cipher that is not the stream’s',
      (data) => {
        const [segment] = decodeSegments(data)
        const cipher = suite.name === 'aegis-256' ? 'aes-256-gcm' : 'aegis-256'
        const { nonceBytes, tagBytes } = SEALED_FORMATS[cipher]
        const sealed = { nonce: new Uint8Array(nonceBytes), ciphertext: new Uint8Array(tagBytes + 3) }
        return encodeSegment({ ...segment!, cipher, sealed })
      },
    ],
    ['another metered size', (data) => encodeSegment({ ...decodeSegments(data)[0]!, meteredBytes: 10 })],
    ['the segment twice', (data) => Buffer.concat([data, data])],
    ['nothing', () => new Uint8Array()],
  ])('reports stored %s as damaged', async (_, change) => {
    const storage = await tampered(suite)
    await engine.with().append('a')
    storage.change = withData(change)
    expect(await read()).toBe('storage')
  })

  it.each<[string, (block: StoredBlock) => Partial<StoredBlock>]>([
    ['metered bytes', ({ meteredBytes }) => ({ meteredBytes: meteredBytes + 1 })],
    ['a longer range', ({ endSeqNum }) => ({ endSeqNum: endSeqNum + 1 })],
    ['another range', () => ({ firstSeqNum: 1, endSeqNum: 3 })],
    ['an earlier time', ({ firstTimestamp }) => ({ firstTimestamp: firstTimestamp - 1 })],
    ['a later time', ({ lastTimestamp }) => ({ lastTimestamp: lastTimestamp + 1 })],
  ])('reports a block as damaged if the storage returns it with %s', async (_, change) => {
    const storage = await tampered(suite)
    await engine.with().append(['a', 'b'])
    await engine.with().append(['c', 'd'])
    storage.change = ([block]) => [{ ...block!, ...change(block!) }]
    expect(await read()).toBe('storage')
  })

  it('opens no block of another stream, nor of one with the same name in another basin', async () => {
    const storage = await tampered(suite)
    await engine.hw.ensureBasin('another', { streamCipher: suite.name })
    const others = [
      engine.basin.stream('streams', { encryptionKey: key(1) }),
      engine.hw.basin('another').stream('stream', { encryptionKey: key(1) }),
    ]
    await engine.with().append('a')
    for (const other of others) {
      await other.append('b')
      expect(bodies(await other.readBatch({ seqNum: 0 }))).toEqual(['b'])
      const moved = storage.read
      storage.change = () => moved
      expect(await read()).toBe('decryption_failed')
      storage.change = (blocks) => blocks
      expect(await read()).toEqual(['a'])
    }
  })
})
