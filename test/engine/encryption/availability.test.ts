import { afterEach, describe, expect, it, vi } from 'vitest'
import { type CipherSuite, open } from '../../../src/index.ts'
import { bodies, onBothKindsOfStorage, openEngine, type TestEngine, testStorage } from '../support.ts'
import { aegis, aesOfNode, aesOfWeb, key, openEncrypted, outcome } from './support.ts'

const engines: TestEngine[] = []
afterEach(async () => {
  vi.unstubAllGlobals()
  await Promise.all(engines.splice(0).map(({ hw }) => hw.close()))
})

function opened<Engine extends TestEngine>(engine: Engine): Engine {
  engines.push(engine)
  return engine
}

const NO_AEGIS =
  '422 invalid: stream_cipher aegis-256 is not available: it needs open({ ciphers: [await aegis256()] }), from headwater/aegis-256'
const NO_AES =
  '422 invalid: stream_cipher aes-256-gcm is not available: WebCrypto is missing, which browsers have on secure pages only (https, localhost)'

/** A page that is not secure: chance, but no ciphers. */
function withoutAes(): void {
  const { getRandomValues, randomUUID } = globalThis.crypto
  vi.stubGlobal('crypto', {
    getRandomValues: getRandomValues.bind(globalThis.crypto),
    randomUUID: randomUUID?.bind(globalThis.crypto) ?? (() => 'id'),
  })
  vi.stubGlobal('process', undefined)
}

onBothKindsOfStorage(() =>
  describe.each([
    ['aegis-256', NO_AEGIS, aegis, () => {}],
    ['aes-256-gcm', NO_AES, aesOfNode, withoutAes],
  ] as const)('where %s is missing', (cipher, message, suite, lose) => {
    it('no basin gets it', async () => {
      const { hw } = opened(await openEngine())
      lose()
      expect(await outcome(hw.createBasin('new', { streamCipher: cipher }))).toBe(message)
      expect(await outcome(hw.ensureBasin('new', { streamCipher: cipher }))).toBe(message)
      expect(await outcome(hw.reconfigureBasin('basin', { streamCipher: cipher }))).toBe(message)
      expect((await hw.listBasins()).items).toHaveLength(1)
      expect((await hw.basinConfig('basin')).streamCipher).toBeNull()
      expect(await outcome(hw.reconfigureBasin('basin', { streamCipher: null }))).toBe('ok')
    })

    it('its streams are neither read nor written, whatever the key', async () => {
      const storage = testStorage()
      const able = opened(await openEncrypted(suite, { storage }))
      await able.with().append('a')
      const { hw } = opened(await openEngine({ storage }))
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
  }),
)

describe('ciphers', () => {
  it('the runtime has AES-256-GCM, by WebCrypto where that is all that there is', async () => {
    const { hw, stream } = opened(await openEngine())
    vi.stubGlobal('process', { ...process, getBuiltinModule: undefined })
    await hw.reconfigureBasin('basin', { streamCipher: 'aes-256-gcm' })
    const encrypted = hw.basin('basin').stream('new', { encryptionKey: key(1) })
    await encrypted.append('a')
    vi.unstubAllGlobals()
    expect(bodies(await encrypted.readBatch({ seqNum: 0 }))).toEqual(['a'])
    // The cipher of a stream is the one that its basin had when it was made.
    await stream.append('plain')
    expect((await hw.basin('basin').listStreams()).items.map(({ cipher }) => cipher)).toEqual([
      'aes-256-gcm',
      null,
    ])
  })

  it('what one implementation sealed another opens', async () => {
    const storage = testStorage()
    const one = opened(await openEncrypted(aesOfNode, { storage }))
    await one.with().append('a')
    const two = opened(await openEncrypted(aesOfWeb, { storage }))
    await two.with().append('b')
    for (const engine of [one, two]) {
      expect(bodies(await engine.with().readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    }
  })

  it.each<[string, CipherSuite[], string]>([
    ['twice', [aegis, aegis], 'ciphers must not have aegis-256 twice'],
    [
      'that nobody knows',
      [{ ...aegis, name: 'rot13' as 'aegis-256' }],
      'ciphers must be named aegis-256 or aes-256-gcm, not rot13',
    ],
  ])('given %s are refused', async (_, ciphers, message) => {
    await expect(open({ storage: testStorage(), ciphers })).rejects.toThrow(new RangeError(message))
  })

  it('a suite that does not keep to its contract is not believed', async () => {
    const engine = opened(await openEncrypted({ ...aesOfNode, seal: (_key, _nonce, plaintext) => plaintext }))
    expect(await outcome(engine.with().append('a'))).toBe(
      '500 other: records could not be sealed: the cipher failed',
    )
    expect((await engine.with().checkTail()).seqNum).toBe(0)
  })

  it('a suite that fails is no wrong key', async () => {
    const failing = { ...aesOfNode, open: () => Promise.reject(new Error('out of memory')) }
    const engine = opened(await openEncrypted(failing))
    await engine.with().append('a')
    expect(await outcome(engine.with().readBatch({ seqNum: 0 }))).toBe(
      '500 other: records could not be opened: the cipher failed',
    )
  })
})
