import { afterEach, describe, expect, it } from 'vitest'
import { fenceRecord } from '../../../src/index.ts'
import { bodies } from '../../support/index.ts'
import { aesOfNode, CIPHERS, type EncryptedEngine, key, openEncrypted, outcome } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

const BASE64 = Buffer.from(key(1)).toString('base64')
const FAILED = '400 decryption_failed: record decryption failed'
const INVALID = '400 encryption_key_invalid: invalid encryption key: invalid base64'
const NO_KEY = '400 encryption_key_invalid: invalid encryption key: neither base64 nor a Uint8Array'
const BAD_KEYS: [string, string | Uint8Array | undefined, string][] = [
  ['no key', undefined, "400 encryption_key_invalid: missing encryption key for stream cipher 'aes-256-gcm'"],
  [
    'an empty key',
    '',
    '400 encryption_key_invalid: invalid encryption key: key material length 0 is out of range',
  ],
  ['no base64', '!'.repeat(44), INVALID],
  // What lenient decoders make 32 bytes of.
  ['base64 with trailing bits', `${BASE64.slice(0, -2)}F=`, INVALID],
  ['base64 without its padding', BASE64.slice(0, -1), INVALID],
  ['base64 with white space in it', `${BASE64.slice(0, 20)} ${BASE64.slice(21)}`, INVALID],
  ['base64 of the alphabet for URLs', `_${BASE64.slice(1)}`, INVALID],
  // What the constructor of byte arrays makes 32 bytes of.
  ['a number', 32 as never, NO_KEY],
  ['an array', Array(32).fill(1) as never, NO_KEY],
  ['numbers of another kind', new Uint32Array(32) as never, NO_KEY],
  ['a buffer without a view', new ArrayBuffer(32) as never, NO_KEY],
  ['an object with a length', { length: 32 } as never, NO_KEY],
  ['null', null as never, NO_KEY],
  [
    'a short key',
    'AAAA',
    '400 encryption_key_invalid: invalid encryption key length: 3 bytes, must be 32 in base64',
  ],
  [
    'a long key',
    new Uint8Array(33),
    '400 encryption_key_invalid: invalid encryption key length: 33 bytes, must be 32 in base64',
  ],
]

describe('a key that is not one', () => {
  it.each(BAD_KEYS)('every call rejects %s', async (_, encryptionKey, message) => {
    engine = await openEncrypted(aesOfNode)
    const { basin } = engine
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
  })

  it.each(BAD_KEYS)('ignores the key on a plain stream: %s', async (_, encryptionKey) => {
    engine = await openEncrypted(aesOfNode)
    const stream = engine.hw.basin('basin').stream('stream', { encryptionKey })
    await stream.append('a')
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a'])
  })
})

describe.each(CIPHERS)('with %s', (_, suite) => {
  it.each([key(1), BASE64, ` ${BASE64} `])('opens with the same key as %s', async (encryptionKey) => {
    engine = await openEncrypted(suite)
    await engine.with(key(1)).append('a')
    expect(bodies(await engine.with(encryptionKey).readBatch({ seqNum: 0 }))).toEqual(['a'])
  })

  it('opens nothing with another key, and ends the session', async () => {
    engine = await openEncrypted(suite)
    await engine.with().append(['a', 'b'])
    const other = engine.with(key(2))
    expect(await outcome(other.readBatch({ seqNum: 0 }))).toBe(FAILED)
    const session = other.follow({ seqNum: 0 }).batches()
    expect(await outcome(session.next())).toBe(FAILED)
    expect((await session.next()).done).toBe(true)
    expect(engine.hw.stats().openReads).toBe(0)
  })

  it('needs only the keys of the appends that a read covers', async () => {
    engine = await openEncrypted(suite)
    await engine.with(key(1)).append(['a', 'b'])
    await engine.with(key(2)).append(['c', 'd'])
    await engine.with(key(2)).append(fenceRecord(''))
    await engine.with(key(1)).append('e')
    const [first, second] = [engine.with(key(1)), engine.with(key(2))]
    expect(bodies(await first.readBatch({ seqNum: 0, count: 2 }))).toEqual(['a', 'b'])
    expect(bodies(await first.readBatch({ seqNum: 0, bytes: 18 }))).toEqual(['a', 'b'])
    expect(bodies(await second.readBatch({ seqNum: 2, count: 2 }))).toEqual(['c', 'd'])
    expect(bodies(await second.readBatch({ seqNum: 3, count: 2 }))).toEqual(['d', ''])
    expect(bodies(await first.readBatch({ seqNum: 4 }))).toEqual(['', 'e'])
    expect(await outcome(first.readBatch({ seqNum: 0, count: 3 }))).toBe(FAILED)
    expect(await outcome(first.readBatch({ seqNum: 0 }))).toBe(FAILED)
    expect(await outcome(second.readBatch({ seqNum: 2 }))).toBe(FAILED)
    // Commands are plain.
    expect(bodies(await engine.with(key(3)).readBatch({ seqNum: 4, count: 1 }))).toEqual([''])
  })

  it('delivers to a session the records that its key opens before the error', async () => {
    engine = await openEncrypted(suite)
    await engine.with(key(1)).append('a')
    await engine.with(key(2)).append('b')
    const session = engine.with(key(1)).follow({ seqNum: 0 }).batches()
    expect(bodies((await session.next()).value!)).toEqual(['a'])
    expect(await outcome(session.next())).toBe(FAILED)
  })
})
