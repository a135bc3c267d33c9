import { afterEach, describe, expect, it } from 'vitest'
import { type Stream, trimRecord } from '../../../src/index.ts'
import { readAll } from '../../support/index.ts'
import { aegis, aesOfNode, CIPHERS, type EncryptedEngine, key, openEncrypted, outcome } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

const FORK = { stream: 'stream' }
const MISSING = (cipher: string) =>
  `400 encryption_key_invalid: missing encryption key for stream cipher '${cipher}'`
const recordsOf = async (stream: Stream) => (await stream.readBatch()).records

describe.each(CIPHERS)('a fork with %s', (_, suite) => {
  it('has the records of its source, sealed again with the key', async () => {
    engine = await openEncrypted(suite)
    const source = engine.with()
    await source.append([{ body: 'a', headers: [['h', '1']], timestamp: 10 }, 'b'])
    await source.append(['c', 'd'])
    const encryptionKey = key(1)
    const options = { fork: { ...FORK, seqNum: 3 }, records: ['own'], encryptionKey }
    await engine.basin.createStream('fork', {}, options)
    const fork = engine.basin.stream('fork', { encryptionKey })
    expect((await recordsOf(fork)).slice(0, 3)).toEqual((await recordsOf(source)).slice(0, 3))
    expect(await readAll(fork)).toEqual(['a', 'b', 'c', 'own'])
    const other = engine.basin.stream('fork', { encryptionKey: key(2) })
    expect(await outcome(readAll(other))).toBe('400 decryption_failed: record decryption failed')
  })

  it('requires the key of its source', async () => {
    engine = await openEncrypted(suite)
    await engine.with().append('a')
    expect(await outcome(engine.basin.createStream('fork', {}, { fork: FORK }))).toBe(MISSING(suite.name))
    const wrong = engine.basin.createStream('fork', {}, { fork: FORK, encryptionKey: key(2) })
    expect(await outcome(wrong)).toBe('400 decryption_failed: record decryption failed')
    const first = engine.basin.createStream('fork', {}, { records: ['a'] })
    expect(await outcome(first)).toBe(MISSING(suite.name))
    expect(await engine.basin.stream('fork').exists()).toBe(false)
  })
})

describe('a fork', () => {
  it('is never stored in plain text if its basin encrypts streams now', async () => {
    engine = await openEncrypted(aesOfNode)
    await engine.hw.createBasin('later')
    const basin = engine.hw.basin('later')
    await basin.stream('plain').append(['a', 'b'])
    await basin.reconfigure({ streamCipher: 'aes-256-gcm' })
    const fork = { stream: 'plain' }
    expect(await outcome(basin.createStream('fork', {}, { fork }))).toBe(MISSING('aes-256-gcm'))
    await basin.createStream('fork', {}, { fork, encryptionKey: key(1) })
    expect(await readAll(basin.stream('fork', { encryptionKey: key(1) }))).toEqual(['a', 'b'])
    expect(await outcome(readAll(basin.stream('fork')))).toBe(MISSING('aes-256-gcm'))
  })

  it('may have another cipher than its source', async () => {
    engine = await openEncrypted(aesOfNode, { ciphers: [aesOfNode, aegis] })
    await engine.with().append(['a', 'b'])
    await engine.with().append(trimRecord(1))
    await engine.basin.reconfigure({ streamCipher: 'aegis-256' })
    const { info } = await engine.basin.createStream('fork', {}, { fork: FORK, encryptionKey: key(1) })
    expect(info.cipher).toBe('aegis-256')
    const fork = engine.basin.stream('fork', { encryptionKey: key(1) })
    expect((await recordsOf(fork)).map(({ seqNum, body }) => [seqNum, body])).toMatchObject([
      [1, 'b'],
      [2, {}],
    ])
  })
})
