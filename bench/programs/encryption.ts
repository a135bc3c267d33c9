import { createCipheriv, createDecipheriv } from 'node:crypto'
import { aegis256 } from '../../adapters/aegis-256/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { aesGcmOfNode, aesGcmOfWeb } from '../../src/engine/encryption/aes-gcm.ts'
import { type CipherSuite, open, type Stream } from '../../src/index.ts'
import { appendBatch } from '../../src/model/append-input.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { nodeCrypto } from '../../src/runtime/node.ts'
import { encodePlaintext, SEALED_FORMATS } from '../../src/storage/sealed-block.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, recordsOfBatch } from '../harness/records.ts'

const KEY = new Uint8Array(32).fill(7)
const ASSOCIATED_DATA = new Uint8Array(40)

/** The ciphers are chosen by their implementation, which the public API does not offer. */
const SUITES: Readonly<Record<string, () => Promise<CipherSuite> | CipherSuite>> = {
  node: () => aesGcmOfNode(nodeCrypto()!),
  web: () => aesGcmOfWeb(crypto.subtle),
  aegis: aegis256,
}

interface Shape {
  /** One of {@link SUITES}, or none for a plain stream. */
  readonly suite?: string
  readonly records: number
  readonly bytes: number
}

host({
  'seal batch': async ({ suite, bytes }: Shape) => {
    const { seal, records } = await sealing(suite!, bytes)
    return repeated(() => seal(records))
  },
  'seal each': async ({ suite, bytes }: Shape) => {
    const { seal, records } = await sealing(suite!, bytes)
    return repeated(() => Promise.all(records.map((record) => seal([record]))))
  },
  append: async ({ suite, records, bytes }: Shape) => {
    const stream = await streamOf(suite)
    const bodies = bodiesFrom(0, records, bytes)
    return repeated(() => stream.append(bodies))
  },
  read: async ({ suite, records, bytes }: Shape) => {
    const stream = await streamOf(suite)
    for (const body of bodiesFrom(0, records, bytes)) await stream.append(body)
    return repeated(() => stream.readBatch({ seqNum: 0 }, { as: 'bytes' }))
  },
  /** An append to a plain stream, and a call of the cipher with the same record. */
  'append and seal': async ({ records, bytes }: Shape) => {
    const stream = await streamOf(undefined)
    const bodies = bodiesFrom(0, records, bytes)
    const plaintext = encodePlaintext(appendBatch(bodies).records)!
    return repeated(() => {
      sealByNode(plaintext)
      return stream.append(bodies)
    })
  },
  /** A read of a plain stream, and a call of the cipher with each of its records. */
  'read and open': async ({ records, bytes }: Shape) => {
    const stream = await streamOf(undefined)
    const sealed: Sealed[] = []
    for (const body of bodiesFrom(0, records, bytes)) {
      await stream.append(body)
      sealed.push(sealByNode(encodePlaintext(appendBatch([body]).records)!))
    }
    return repeated(() => {
      for (const each of sealed) openByNode(each)
      return stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
    })
  },
})

interface Sealed {
  readonly nonce: Uint8Array
  readonly ciphertext: Buffer
  readonly tag: Buffer
}

function sealByNode(plaintext: Uint8Array): Sealed {
  const nonce = crypto.getRandomValues(new Uint8Array(12))
  const cipher = createCipheriv('aes-256-gcm', KEY, nonce)
  cipher.setAAD(ASSOCIATED_DATA)
  const ciphertext = cipher.update(plaintext)
  cipher.final()
  return { nonce, ciphertext, tag: cipher.getAuthTag() }
}

function openByNode({ nonce, ciphertext, tag }: Sealed): void {
  const decipher = createDecipheriv('aes-256-gcm', KEY, nonce, { authTagLength: 16 })
  decipher.setAAD(ASSOCIATED_DATA)
  decipher.setAuthTag(tag)
  decipher.update(ciphertext)
  decipher.final()
}

async function sealing(name: string, bytes: number) {
  const suite = await SUITES[name]!()
  const { records } = appendBatch(bodiesFrom(0, recordsOfBatch(bytes), bytes))
  const key = new EncryptionKey(KEY)
  const { nonceBytes } = SEALED_FORMATS[suite.name]
  const seal = (some: typeof records) =>
    suite.seal(
      key,
      crypto.getRandomValues(new Uint8Array(nonceBytes)),
      encodePlaintext(some)!,
      ASSOCIATED_DATA,
    )
  return { seal, records }
}

async function streamOf(name: string | undefined): Promise<Stream> {
  if (name === undefined) return (await open({ storage: memory() })).basin('my-basin').stream('my-stream')
  const suite = await SUITES[name]!()
  const headwater = await open({ storage: memory(), ciphers: [suite] })
  await headwater.ensureBasin('my-basin', { streamCipher: suite.name })
  return headwater.basin('my-basin').stream('my-stream', { encryptionKey: KEY })
}

function repeated(work: () => unknown): Prepared {
  return {
    async turn(count) {
      for (let i = 0; i < count; i++) await work()
    },
  }
}
