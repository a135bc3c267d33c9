import { afterEach, describe, expect, it, vi } from 'vitest'
import type { CipherSuite, HeadwaterError } from '../../../src/index.ts'
import { bodies, openEngine, testStorage } from '../../support/index.ts'
import { aegis, aesOfNode, aesOfWeb, key, openEncrypted, outcome } from './support.ts'

afterEach(() => vi.unstubAllGlobals())

const NO_AEGIS = 'it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256'
const NO_AES = 'WebCrypto is missing, which browsers have on secure pages only (https, localhost)'

/** A page that is not secure: random numbers, but no ciphers. */
function withoutAes(): void {
  const { getRandomValues, randomUUID } = globalThis.crypto
  vi.stubGlobal('crypto', {
    getRandomValues: getRandomValues.bind(globalThis.crypto),
    randomUUID: randomUUID?.bind(globalThis.crypto) ?? (() => 'id'),
  })
  vi.stubGlobal('process', undefined)
}

describe.each([
  ['aegis-256', NO_AEGIS, aegis, () => {}],
  ['aes-256-gcm', NO_AES, aesOfNode, withoutAes],
] as const)('where %s is missing', (cipher, problem, suite, lose) => {
  const message = `422 invalid: \`streamCipher\` ${cipher} is not available: ${problem}`

  it('is rejected in the configuration of a basin', async () => {
    const { hw } = await openEngine()
    lose()
    expect(await outcome(hw.createBasin('new', { streamCipher: cipher }))).toBe(message)
    expect(await outcome(hw.ensureBasin('new', { streamCipher: cipher }))).toBe(message)
    expect(await outcome(hw.basin('basin').reconfigure({ streamCipher: cipher }))).toBe(message)
    expect((await hw.listBasins()).items).toHaveLength(1)
    expect((await hw.basin('basin').config()).streamCipher).toBeNull()
    expect(await outcome(hw.basin('basin').reconfigure({ streamCipher: null }))).toBe('ok')
  })

  it('makes its streams neither readable nor writable with any key', async () => {
    const storage = testStorage()
    const writer = await openEncrypted(suite, { storage })
    await writer.with().append('a')
    const { hw } = await openEngine({ storage })
    lose()
    for (const encryptionKey of [key(1), undefined]) {
      const stream = hw.basin('encrypted').stream('stream', { encryptionKey })
      expect(await outcome(stream.append('b'))).toBe(message)
      expect(await outcome(stream.appendSession())).toBe(message)
      expect(await outcome(stream.readBatch({ seqNum: 0 }))).toBe(message)
      expect((await stream.checkTail()).seqNum).toBe(1)
    }
    expect(hw.stats()).toMatchObject({ openReads: 0, pendingAppends: 0, appendBytesInFlight: 0 })
  })
})

it('AES-256-GCM is that of WebCrypto where `node:crypto` is missing', async () => {
  const { hw, stream } = await openEngine()
  vi.stubGlobal('process', { ...process, getBuiltinModule: undefined })
  await hw.basin('basin').reconfigure({ streamCipher: 'aes-256-gcm' })
  const encrypted = hw.basin('basin').stream('new', { encryptionKey: key(1) })
  await encrypted.append('a')
  vi.unstubAllGlobals()
  expect(bodies(await encrypted.readBatch({ seqNum: 0 }))).toEqual(['a'])
  // The cipher of a stream is the one that its basin had when the stream was created.
  await stream.append('plain')
  const { items } = await hw.basin('basin').listStreams()
  expect(items.map(({ cipher }) => cipher)).toEqual(['aes-256-gcm', null])
})

it('a suite opens what another implementation of its cipher sealed', async () => {
  const storage = testStorage({ shared: true })
  const first = await openEncrypted(aesOfNode, { storage })
  await first.with().append('a')
  const second = await openEncrypted(aesOfWeb, { storage })
  await second.with().append('b')
  for (const engine of [first, second]) {
    expect(bodies(await engine.with().readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
  }
})

it.each<[string, CipherSuite['seal']]>([
  ['fails', () => Promise.reject(new Error('out of entropy'))],
  ['gives nothing', () => undefined as never],
  ['gives text of the right length', () => 'x'.repeat(1_000) as never],
  ['gives an array', (_key, _nonce, plaintext) => Array(plaintext.length + 16).fill(0) as never],
  ['gives the plaintext', (_key, _nonce, plaintext) => plaintext],
])('a suite that %s appends nothing', async (_, seal) => {
  const engine = await openEncrypted({ ...aesOfNode, seal })
  const error = await engine
    .with()
    .append('a')
    .catch((failure: HeadwaterError) => failure)
  expect(error).toMatchObject({
    code: 'other',
    message: 'records could not be sealed: the cipher failed',
    // Nothing was passed to the storage.
    mayHaveEffects: false,
  })
  expect((await engine.with().checkTail()).seqNum).toBe(0)
  expect(engine.hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
})

it.each<[string, CipherSuite['open']]>([
  ['fails', () => Promise.reject(new Error('out of memory'))],
  ['gives an array', (_key, _nonce, ciphertext) => Array(ciphertext.length - 16).fill(0) as never],
  ['gives too much', (_key, _nonce, ciphertext) => ciphertext],
])('a suite that %s is reported as neither a wrong key nor damage', async (_, open) => {
  const engine = await openEncrypted({ ...aesOfNode, open })
  await engine.with().append('a')
  expect(await outcome(engine.with().readBatch({ seqNum: 0 }))).toBe(
    '500 other: records could not be opened: the cipher failed',
  )
})
