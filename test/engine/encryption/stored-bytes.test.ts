import { afterEach, describe, expect, it } from 'vitest'
import { type CipherSuite, fenceRecord, type OpenOptions, trimRecord } from '../../../src/index.ts'
import type { AppendRequest, StorageSession } from '../../../src/storage/contract.ts'
import { decodeSegments, decodeSkeleton } from '../../../src/storage/sealed-block.ts'
import { testStorage, wrapped } from '../../support/index.ts'
import { CIPHERS, type EncryptedEngine, openEncrypted } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

/** Opens an engine and records everything that is passed to its storage. */
async function watched(suite: CipherSuite, options: Partial<OpenOptions> = {}) {
  const appends: AppendRequest[] = []
  const documents: string[] = []
  const storage = wrapped(testStorage(), {}, (session) => ({
    append: (request) => {
      appends.push(request)
      return session.append(request)
    },
    commit: (changes: Parameters<StorageSession['commit']>[0]) => {
      documents.push(JSON.stringify(changes))
      return session.commit(changes)
    },
  }))
  engine = await openEncrypted(suite, { storage, ...options })
  return { appends, documents }
}

/** The same random numbers each time. */
function seeded(): () => number {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

/** What to look for: a text as it is, in hexadecimal digits and in base64 at each of its three alignments. */
function traces(secret: Uint8Array): string[] {
  const aligned = [0, 1, 2].map((skip) => Buffer.from(secret.subarray(skip)).toString('base64').slice(0, 12))
  return [Buffer.from(secret).toString('latin1'), Buffer.from(secret).toString('hex'), ...aligned]
}

describe.each(CIPHERS)('%s', (_, suite) => {
  it('keeps bodies, headers and keys out of the storage', async () => {
    const { appends, documents } = await watched(suite)
    const secretKey = crypto.getRandomValues(new Uint8Array(32))
    const secrets = ['the body of it', 'the-header-name', 'the header value'].map((text) => Buffer.from(text))
    const [body, name, value] = secrets as [Buffer, Buffer, Buffer]
    const stream = engine.with(secretKey)
    await stream.append({ body, headers: [[name, value]] })
    await stream.append([{ body }, fenceRecord('token'), { body, headers: [[name, value]] }])
    const session = await stream.appendSession()
    await (await session.submit({ body })).ack()
    await session.close()
    await engine.basin.stream('made on use', { encryptionKey: secretKey }).append({ body })

    const stored = [
      ...appends.map(({ block }) => Buffer.from(block.data).toString('latin1')),
      ...appends.map((request) => JSON.stringify(request)),
      ...documents,
    ].join('\n')
    expect(appends).toHaveLength(4)
    for (const secret of [...secrets, secretKey]) {
      for (const trace of traces(secret)) expect(stored).not.toContain(trace)
    }
    // The command, to show that something could have been found.
    expect(stored).toContain('fence')
  })

  it('keeps commands, positions and metered sizes plain', async () => {
    const { appends } = await watched(suite)
    const stream = engine.with()
    await stream.append([fenceRecord('token'), 'ordinary', trimRecord(1)])
    const { block, head } = appends[0]!
    expect(head).toMatchObject({ fencingToken: 'token', trimPoint: 1 })
    const [segment] = decodeSegments(block.data)
    expect(segment!.meteredBytes).toBe(block.meteredBytes)
    const seen = decodeSkeleton(segment!.skeleton).map(({ seqNum, timestamp, headers, body }) => ({
      seqNum,
      timestamp,
      command: headers.map(([, operation]) => Buffer.from(operation).toString()),
      bytes: body.length,
    }))
    expect(seen).toEqual([
      { seqNum: 0, timestamp: 1_000_000, command: ['fence'], bytes: 5 },
      { seqNum: 1, timestamp: 1_000_000, command: [], bytes: 0 },
      { seqNum: 2, timestamp: 1_000_000, command: ['trim'], bytes: 8 },
    ])
  })

  it('seals the same records differently each time, even with a seeded random source', async () => {
    const nonces: string[] = []
    for (let run = 0; run < 2; run++) {
      const { appends } = await watched(suite, { random: seeded() })
      for (let i = 0; i < 2; i++) await engine.with().append('a')
      for (const { block } of appends) {
        nonces.push(Buffer.from(decodeSegments(block.data)[0]!.sealed!.nonce).toString('hex'))
      }
      if (run === 0) await engine.hw.close()
    }
    expect(new Set(nonces).size).toBe(4)
  })
})
