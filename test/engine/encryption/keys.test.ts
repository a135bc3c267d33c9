import { describe, expect, it } from 'vitest'
import { fenceRecord, type Stream, trimRecord } from '../../../src/index.ts'
import { bodies, readAll } from '../../support/index.ts'
import { aegis, aesOfNode, CIPHERS, key, openEncrypted, outcome } from './support.ts'

const BASE64 = Buffer.from(key(1)).toString('base64')
const FAILED = '400 decryption_failed: record decryption failed'
const missing = (cipher: string) =>
  `400 encryption_key_invalid: missing encryption key for stream cipher '${cipher}'`
const invalid = (problem: string) => `400 encryption_key_invalid: invalid encryption key${problem}`
const NO_BASE64 = invalid(': invalid base64')
const NO_KEY = invalid(': neither base64 nor a Uint8Array')

describe('a key that is not one', () => {
  it.each<[string, unknown, string]>([
    ['no key', undefined, missing('aes-256-gcm')],
    ['an empty key', '', invalid(': key material length 0 is out of range')],
    ['no base64', '!'.repeat(44), NO_BASE64],
    // What lenient decoders make 32 bytes of.
    ['base64 with trailing bits', `${BASE64.slice(0, -2)}F=`, NO_BASE64],
    ['base64 without its padding', BASE64.slice(0, -1), NO_BASE64],
    ['base64 with white space in it', `${BASE64.slice(0, 20)} ${BASE64.slice(21)}`, NO_BASE64],
    ['base64 of the alphabet for URLs', `_${BASE64.slice(1)}`, NO_BASE64],
    // What the constructor of byte arrays makes 32 bytes of.
    ['a number', 32, NO_KEY],
    ['an array', Array(32).fill(1), NO_KEY],
    ['numbers of another kind', new Uint32Array(32), NO_KEY],
    ['a buffer without a view', new ArrayBuffer(32), NO_KEY],
    ['an object with a length', { length: 32 }, NO_KEY],
    ['null', null, NO_KEY],
    ['a short key', 'AAAA', invalid(' length: 3 bytes, must be 32 in base64')],
    ['a long key', new Uint8Array(33), invalid(' length: 33 bytes, must be 32 in base64')],
  ])('every call rejects %s, which a plain stream ignores', async (_, given, message) => {
    const encryptionKey = given as string
    const { hw, basin, ...engine } = await openEncrypted(aesOfNode)
    await engine.with().append('a')
    const stream = basin.stream('stream', { encryptionKey })
    expect(await outcome(stream.append('b'))).toBe(message)
    expect(await outcome(stream.append(fenceRecord('t')))).toBe(message)
    expect(await outcome(stream.appendSession())).toBe(message)
    expect(await outcome(stream.readBatch({ seqNum: 0 }))).toBe(message)
    expect(await outcome(stream.follow({ seqNum: 0 }).batches().next())).toBe(message)
    // Before conditions and 416 are checked.
    expect(await outcome(stream.append('b', { matchSeqNum: 9 }))).toBe(message)
    expect(await outcome(stream.readBatch({ seqNum: 9 }))).toBe(message)
    // The tail is no secret.
    expect((await stream.checkTail()).seqNum).toBe(1)
    // After the stream was looked up or created.
    const fresh = basin.stream('fresh', { encryptionKey })
    expect(await outcome(fresh.append('b'))).toBe(message)
    expect((await basin.listStreams()).items.map(({ name }) => name)).toContain('fresh')
    expect((await fresh.checkTail()).seqNum).toBe(0)
    expect(hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })

    const plain = hw.basin('basin').stream('stream', { encryptionKey })
    await plain.append('a')
    expect(bodies(await plain.readBatch({ seqNum: 0 }))).toEqual(['a'])
  })
})

describe.each(CIPHERS)('with %s', (_, suite) => {
  it.each([key(1), BASE64, ` ${BASE64} `])('opens with the same key as %s', async (encryptionKey) => {
    const engine = await openEncrypted(suite)
    await engine.with(key(1)).append('a')
    expect(bodies(await engine.with(encryptionKey).readBatch({ seqNum: 0 }))).toEqual(['a'])
  })

  it('needs only the keys of the appends that a read covers', async () => {
    const engine = await openEncrypted(suite)
    await engine.with(key(1)).append(['a', 'b'])
    await engine.with(key(2)).append(['c', 'd'])
    await engine.with(key(2)).append(fenceRecord(''))
    await engine.with(key(1)).append('e')
    const read = async (fill: number, query: object) => {
      const batch = engine.with(key(fill)).readBatch({ seqNum: 0, ...query })
      return batch.then(bodies, () => outcome(batch))
    }
    expect(await read(1, { count: 2 })).toEqual(['a', 'b'])
    expect(await read(1, { bytes: 18 })).toEqual(['a', 'b'])
    expect(await read(2, { seqNum: 2, count: 2 })).toEqual(['c', 'd'])
    expect(await read(2, { seqNum: 3, count: 2 })).toEqual(['d', ''])
    expect(await read(1, { seqNum: 4 })).toEqual(['', 'e'])
    expect(await read(1, { count: 3 })).toBe(FAILED)
    expect(await read(1, {})).toBe(FAILED)
    expect(await read(2, { seqNum: 2 })).toBe(FAILED)
    // Commands are plain.
    expect(await read(3, { seqNum: 4, count: 1 })).toEqual([''])
  })

  it('a session gets the records that its key opens, then the error', async () => {
    const engine = await openEncrypted(suite)
    await engine.with(key(1)).append('a')
    await engine.with(key(2)).append('b')
    const session = engine.with(key(1)).follow({ seqNum: 0 }).batches()
    expect(bodies((await session.next()).value!)).toEqual(['a'])
    expect(await outcome(session.next())).toBe(FAILED)
    expect((await session.next()).done).toBe(true)
    expect(engine.hw.stats().openReads).toBe(0)
  })
})

const FORK = { stream: 'stream' }
const recordsOf = async (stream: Stream) => (await stream.readBatch()).records

describe.each(CIPHERS)('a fork with %s', (_, suite) => {
  it('has the records of its source, sealed again with the key', async () => {
    const { basin, ...engine } = await openEncrypted(suite)
    const source = engine.with()
    await source.append([{ body: 'a', headers: [['h', '1']], timestamp: 10 }, 'b'])
    await source.append(['c', 'd'])
    const encryptionKey = key(1)
    await basin.createStream('fork', {}, { fork: { ...FORK, seqNum: 3 }, records: ['own'], encryptionKey })
    const fork = basin.stream('fork', { encryptionKey })
    expect((await recordsOf(fork)).slice(0, 3)).toEqual((await recordsOf(source)).slice(0, 3))
    expect(await readAll(fork)).toEqual(['a', 'b', 'c', 'own'])
    expect(await outcome(readAll(basin.stream('fork', { encryptionKey: key(2) })))).toBe(FAILED)
  })

  it('requires the key of its source', async () => {
    const { basin, ...engine } = await openEncrypted(suite)
    await engine.with().append('a')
    const created = (options: object) => outcome(basin.createStream('fork', {}, options))
    expect(await created({ fork: FORK })).toBe(missing(suite.name))
    expect(await created({ fork: FORK, encryptionKey: key(2) })).toBe(FAILED)
    expect(await created({ records: ['a'] })).toBe(missing(suite.name))
    expect(await basin.stream('fork').exists()).toBe(false)
  })
})

describe('a fork', () => {
  it('is never stored in plain text if its basin encrypts streams now', async () => {
    const { hw } = await openEncrypted(aesOfNode)
    await hw.createBasin('later')
    const basin = hw.basin('later')
    await basin.stream('plain').append(['a', 'b'])
    await basin.reconfigure({ streamCipher: 'aes-256-gcm' })
    const fork = { stream: 'plain' }
    expect(await outcome(basin.createStream('fork', {}, { fork }))).toBe(missing('aes-256-gcm'))
    await basin.createStream('fork', {}, { fork, encryptionKey: key(1) })
    expect(await readAll(basin.stream('fork', { encryptionKey: key(1) }))).toEqual(['a', 'b'])
    expect(await outcome(readAll(basin.stream('fork')))).toBe(missing('aes-256-gcm'))
  })

  it('keeps the cipher of its source if its basin encrypts no streams now', async () => {
    const { basin, ...engine } = await openEncrypted(aesOfNode)
    await engine.with().append('a')
    await basin.reconfigure({ streamCipher: null })
    expect(await outcome(basin.createStream('fork', {}, { fork: FORK }))).toBe(missing('aes-256-gcm'))
    const encryptionKey = key(1)
    const options = { fork: FORK, records: ['b'], encryptionKey }
    const { info } = await basin.createStream('fork', {}, options)
    expect(info.cipher).toBe('aes-256-gcm')
    expect((await basin.listStreams({ prefix: 'fork' })).items).toEqual([info])
    expect(await readAll(basin.stream('fork', { encryptionKey }))).toEqual(['a', 'b'])
    expect(await outcome(readAll(basin.stream('fork')))).toBe(missing('aes-256-gcm'))
    await basin.createStream('inner', {}, { fork: { stream: 'fork', seqNum: 0 } })
    expect(await outcome(basin.stream('inner').append('a'))).toBe(missing('aes-256-gcm'))
  })

  it('may have another cipher than its source', async () => {
    const { basin, ...engine } = await openEncrypted(aesOfNode, { ciphers: [aesOfNode, aegis] })
    await engine.with().append(['a', 'b'])
    await engine.with().append(trimRecord(1))
    await basin.reconfigure({ streamCipher: 'aegis-256' })
    const { info } = await basin.createStream('fork', {}, { fork: FORK, encryptionKey: key(1) })
    expect(info.cipher).toBe('aegis-256')
    const fork = basin.stream('fork', { encryptionKey: key(1) })
    expect((await recordsOf(fork)).map(({ seqNum, body }) => [seqNum, body])).toMatchObject([
      [1, 'b'],
      [2, {}],
    ])
  })
})
