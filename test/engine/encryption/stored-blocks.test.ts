import { describe, expect, it } from 'vitest'
import {
  type CipherSuite,
  fenceRecord,
  type HeadwaterError,
  type OpenOptions,
  trimRecord,
} from '../../../src/index.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import {
  decodeSegments,
  decodeSkeleton,
  encodeSegment,
  SEALED_FORMATS,
} from '../../../src/storage/sealed-block.ts'
import { bodies, testStorage, wrapped } from '../../support/index.ts'
import { CIPHERS, key, openEncrypted } from './support.ts'

const KEY = { encryptionKey: key(1) }
const FRAME_BYTES = 14
const PLAIN = encodeRecords([{ seqNum: 0, timestamp: 1_000_000, headers: [], body: new Uint8Array([97]) }])

/** Opens an engine whose storage is watched, and may be changed by the test. */
async function watched(suite: CipherSuite, options: Partial<OpenOptions> = {}) {
  const storage = {
    appends: [] as AppendRequest[],
    documents: [] as string[],
    /** What was read last. */
    blocks: [] as StoredBlock[],
    change: (blocks: StoredBlock[]): StoredBlock[] => blocks,
    changeData(change: (data: Uint8Array) => Uint8Array) {
      storage.change = ([block]) => [{ ...block!, data: change(block!.data.slice()) }]
    },
  }
  const inner = wrapped(testStorage(), {}, (session) => ({
    append: (request) => {
      storage.appends.push(request)
      return session.append(request)
    },
    commit: (changes) => {
      storage.documents.push(JSON.stringify(changes))
      return session.commit(changes)
    },
    read: async (logId, range) => {
      storage.blocks = await session.read(logId, range)
      return storage.change(storage.blocks)
    },
  }))
  const engine = await openEncrypted(suite, { ...options, storage: inner })
  const read = () =>
    engine
      .with()
      .readBatch({ seqNum: 0 })
      .then(bodies, ({ code }: HeadwaterError) => code)
  return { ...engine, storage, read }
}

describe.each(CIPHERS)('what %s stores', (_, suite) => {
  /**
   * What to look for: a text as it is, in hexadecimal digits and in base64 at each of its three alignments.
   */
  function traces(secret: Uint8Array): string[] {
    const base64 = [0, 1, 2].map((skip) => Buffer.from(secret.subarray(skip)).toString('base64').slice(0, 12))
    return [Buffer.from(secret).toString('latin1'), Buffer.from(secret).toString('hex'), ...base64]
  }

  it('has no trace of bodies, headers and keys', async () => {
    const { storage, basin, ...engine } = await watched(suite)
    const encryptionKey = crypto.getRandomValues(new Uint8Array(32))
    const [body, name, value] = ['the body of it', 'the-header-name', 'the header value'].map((text) =>
      Buffer.from(text),
    ) as [Buffer, Buffer, Buffer]
    const stream = engine.with(encryptionKey)
    await stream.append({ body, headers: [[name, value]] })
    await stream.append([{ body }, fenceRecord('token'), { body, headers: [[name, value]] }])
    const session = await stream.appendSession()
    await (await session.submit({ body })).ack()
    await session.close()
    await basin.stream('made on use', { encryptionKey }).append({ body })

    expect(storage.appends).toHaveLength(4)
    const stored = [
      ...storage.appends.map(({ blocks: [block] }) => Buffer.from(block!.data).toString('latin1')),
      ...storage.appends.map((request) => JSON.stringify(request)),
      ...storage.documents,
    ].join('\n')
    for (const trace of [body, name, value, encryptionKey].flatMap(traces))
      expect(stored).not.toContain(trace)
    // The command, to show that something could have been found.
    expect(stored).toContain('fence')
  })

  it('has commands, positions and metered sizes in plain text', async () => {
    const { storage, ...engine } = await watched(suite)
    await engine.with().append([fenceRecord('token'), 'ordinary', trimRecord(1)])
    const { blocks, head } = storage.appends[0]!
    const block = blocks[0]!
    expect(head).toMatchObject({ fencingToken: 'token', trimPoint: 1 })
    const [segment] = decodeSegments(block.data)
    expect(segment!.meteredBytes).toBe(block.meteredBytes)
    const seen = decodeSkeleton(segment!.skeleton).map(({ seqNum, timestamp, headers, body }) => [
      seqNum,
      timestamp,
      headers.map(([, operation]) => Buffer.from(operation).toString()),
      body.length,
    ])
    expect(seen).toEqual([
      [0, 1_000_000, ['fence'], 5],
      [1, 1_000_000, [], 0],
      [2, 1_000_000, ['trim'], 8],
    ])
  })

  it('differs each time for the same records, even with a seeded random source', async () => {
    const nonces = new Set<string>()
    for (let run = 0; run < 2; run++) {
      const prng = new Prng(1)
      const { storage, ...engine } = await watched(suite, { random: () => prng.next() })
      for (let i = 0; i < 2; i++) await engine.with().append('a')
      for (const { blocks } of storage.appends) {
        nonces.add(Buffer.from(decodeSegments(blocks[0]!.data)[0]!.sealed!.nonce).toString('hex'))
      }
    }
    expect(nonces.size).toBe(4)
  })
})

describe.each(CIPHERS)('a block of %s', (_, suite) => {
  it('never passes for other ordinary records with any byte altered', async () => {
    const { storage, read, ...engine } = await watched(suite)
    await engine.with().append(['a', fenceRecord('t'), { body: 'b', headers: [['k', 'v']] }])
    expect(await read()).toEqual(['a', 't', 'b'])
    const { data } = storage.blocks[0]!
    const sealedStart = FRAME_BYTES + decodeSegments(data)[0]!.skeleton.length
    for (let i = 0; i < data.length; i++) {
      storage.changeData((bytes) => {
        bytes[i]! ^= 1
        return bytes
      })
      const result = await read()
      if (i >= sealedStart) expect(result).toBe('decryption_failed')
      else if (i < FRAME_BYTES) expect(['decryption_failed', 'storage']).toContain(result)
      // The plain text of commands may be altered, and nothing else of the skeleton.
      else if (typeof result === 'string') expect(result).toBe('storage')
      else expect(result).toEqual(['a', expect.any(String), 'b'])
    }
  })

  it('is damaged if it is cut short anywhere', async () => {
    const { storage, read, ...engine } = await watched(suite)
    await engine.with().append('a')
    await read()
    const { length } = storage.blocks[0]!.data
    for (let i = 0; i < length; i++) {
      storage.changeData((bytes) => bytes.slice(0, i))
      expect(await read()).toBe('storage')
    }
  })

  it.each<[string, (data: Uint8Array) => Uint8Array]>([
    ['plain records', () => PLAIN],
    [
      'plain records in the skeleton',
      (data) => encodeSegment({ ...decodeSegments(data)[0]!, skeleton: PLAIN, sealed: undefined }),
    ],
    [
      'a cipher that is not the stream’s',
      (data) => {
        const cipher = suite.name === 'aegis-256' ? 'aes-256-gcm' : 'aegis-256'
        const { nonceBytes, tagBytes } = SEALED_FORMATS[cipher]
        const sealed = { nonce: new Uint8Array(nonceBytes), ciphertext: new Uint8Array(tagBytes + 3) }
        return encodeSegment({ ...decodeSegments(data)[0]!, cipher, sealed })
      },
    ],
    ['another metered size', (data) => encodeSegment({ ...decodeSegments(data)[0]!, meteredBytes: 10 })],
    ['the segment twice', (data) => Buffer.concat([data, data])],
    ['nothing', () => new Uint8Array()],
  ])('is damaged if it contains %s', async (_, change) => {
    const { storage, read, ...engine } = await watched(suite)
    await engine.with().append('a')
    storage.changeData(change)
    expect(await read()).toBe('storage')
  })

  it.each<[string, (block: StoredBlock) => Partial<StoredBlock>]>([
    ['metered bytes', ({ meteredBytes }) => ({ meteredBytes: meteredBytes + 1 })],
    ['a longer range', ({ endSeqNum }) => ({ endSeqNum: endSeqNum + 1 })],
    ['another range', () => ({ firstSeqNum: 1, endSeqNum: 3 })],
    ['an earlier time', ({ firstTimestamp }) => ({ firstTimestamp: firstTimestamp - 1 })],
    ['a later time', ({ lastTimestamp }) => ({ lastTimestamp: lastTimestamp + 1 })],
  ])('is damaged if the storage returns it with %s', async (_, change) => {
    const { storage, read, ...engine } = await watched(suite)
    await engine.with().append(['a', 'b'])
    await engine.with().append(['c', 'd'])
    storage.change = ([block]) => [{ ...block!, ...change(block!) }]
    expect(await read()).toBe('storage')
  })

  it('cannot be opened on another stream, nor on one with the same name in another basin', async () => {
    const { storage, read, hw, basin, ...engine } = await watched(suite)
    await hw.ensureBasin('another', { streamCipher: suite.name })
    await engine.with().append('a')
    for (const other of [basin.stream('streams', KEY), hw.basin('another').stream('stream', KEY)]) {
      await other.append('b')
      expect(bodies(await other.readBatch({ seqNum: 0 }))).toEqual(['b'])
      const moved = storage.blocks
      storage.change = () => moved
      expect(await read()).toBe('decryption_failed')
      storage.change = (blocks) => blocks
      expect(await read()).toEqual(['a'])
    }
  })
})
