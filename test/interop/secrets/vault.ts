import { onTestFinished } from 'vitest'
import { aegis256 } from '../../../adapters/aegis-256/index.ts'
import { serve } from '../../../adapters/node/index.ts'
import { type Engine, open } from '../../../src/index.ts'
import type { Cipher } from '../../../src/model/config.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { EVERYTHING } from '../../engine/access/support.ts'
import { testClock, testStorage, wrapped } from '../../support/index.ts'
import { type Evidence, evidenceOfTest } from './evidence.ts'

export const BASIN = 'vault-basin'
const SEALED: Readonly<Record<string, Cipher>> = { letters: 'aes-256-gcm', notes: 'aegis-256' }
export const STREAMS = [...Object.keys(SEALED), 'plain']
export const ROOT_TOKEN = 'Zr7-the-root-token-of-this-test-Qx2'
export const KEYS = {
  'the right key': keyOf(1),
  'a wrong key': keyOf(2),
  'a key that is too long': `${keyOf(3)}${keyOf(4)}`,
  'a key without padding': keyOf(5).replace(/=+$/, ''),
  'no base64': `?${keyOf(6).slice(0, -1)}`,
}
/** The content of records in the encrypted streams. */
export const SEALED_TEXTS = {
  'a sealed body': 'sealed-body-c19f4e',
  'the name of a sealed header': 'sealed-name-77ab0d',
  'the value of a sealed header': 'sealed-value-5e2c31',
}
/** The content of records in the stream without a cipher, which only the storage may contain. */
export const PLAIN_TEXTS = {
  'a plain body': 'plain-body-90d1ab',
  'the value of a plain header': 'plain-value-44c0fe',
}
/** 32 bytes in base64, the same in each run, without a pattern. */
function keyOf(seed: number): string {
  let state = seed
  const bytes = Uint8Array.from({ length: 32 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 24
  })
  return Buffer.from(bytes).toString('base64')
}

/** Records of each stream; the encrypted ones also have a header. */
async function fill(hw: Engine): Promise<void> {
  await hw.createBasin(BASIN)
  const basin = hw.basin(BASIN)
  const encryptionKey = KEYS['the right key']
  const [body, name, value] = Object.values(SEALED_TEXTS)
  for (const [stream, streamCipher] of Object.entries(SEALED)) {
    await basin.reconfigure({ streamCipher })
    await basin.createStream(stream)
    await basin.stream(stream, { encryptionKey }).append({ headers: [[name!, value!]], body: body! })
  }
  await basin.reconfigure({ streamCipher: null })
  await basin.createStream('plain')
  const [plainBody, plainValue] = Object.values(PLAIN_TEXTS)
  await basin.stream('plain').append({ headers: [['n', plainValue!]], body: plainBody! })
}

/** Tokens of every kind. The first two permit everything. */
async function tokensOf(hw: Engine) {
  const issue = (id: string, more: object = {}) =>
    hw.issueAccessToken({ id, scope: { ...EVERYTHING, ...more } })
  const tokens = {
    'the root token': ROOT_TOKEN,
    'an issued token': await issue('fine'),
    'a limited token': await issue('limited', { streams: { exact: 'elsewhere' } }),
    'a revoked token': await issue('revoked'),
    'an expired token': await hw.issueAccessToken({
      id: 'expired',
      scope: EVERYTHING,
      expiresAt: new Date(hw.now() + 1),
    }),
    'a token of nobody': Buffer.from(`${keyOf(7)}nobody`).toString('base64'),
  }
  await hw.revokeAccessToken('revoked')
  return tokens
}

type Method = Exclude<keyof StorageSession, 'close'>
export const STORAGE_METHODS: readonly Method[] = [
  ...(['get', 'list', 'commit', 'head', 'append', 'read', 'reclaim', 'measure'] as const),
]

/** A storage whose writes are evidence. `failing` makes the calls of one method fail while `call` runs. */
function watchedStorage(evidence: Evidence) {
  let failure: { method: Method; error: () => unknown } | undefined
  const storage = wrapped(testStorage(), {}, (session) =>
    Object.fromEntries(
      STORAGE_METHODS.map((method) => [
        method,
        (...args: unknown[]) => {
          if (method === 'commit' || method === 'append') evidence.add('stored', method, args)
          if (failure?.method === method) return Promise.reject(failure.error())
          return (session[method] as (...args: unknown[]) => Promise<unknown>)(...args)
        },
      ]),
    ),
  )
  async function failing(method: Method, error: () => unknown, call: () => Promise<unknown>): Promise<void> {
    failure = { method, error }
    try {
      await call()
    } finally {
      failure = undefined
    }
  }
  return { storage, failing }
}

export type Vault = Awaited<ReturnType<typeof startVault>>

/** A server of these streams that requires tokens. All that it stores, prints or reports is evidence. */
export async function startVault() {
  const evidence = evidenceOfTest()
  const reported = (source: string) => (error: unknown) => evidence.add('errors', source, error)
  const { storage, failing } = watchedStorage(evidence)
  const clock = testClock()
  const ciphers = [await aegis256()]
  const hw = await open({ storage, clock, ciphers, onBackgroundError: reported('onBackgroundError') })
  const server = await serve(hw, { onError: reported('onError') })
  onTestFinished(async () => {
    await Promise.all([server.close({ graceMs: 100 }), hw.close()])
  })
  await hw.setRootToken(ROOT_TOKEN)
  await fill(hw)
  const tokens = await tokensOf(hw)
  await clock.advance(10)
  return { hw, clock, server, tokens, failing, evidence }
}
