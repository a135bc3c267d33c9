import type { Cipher } from '../../../src/model/config.ts'
import type { Place, Secrets } from './evidence.ts'

export const BASIN = 'vault-basin'
export const STREAMS = ['letters', 'notes', 'plain']
export const SEALED: Readonly<Record<string, Cipher>> = { letters: 'aes-256-gcm', notes: 'aegis-256' }
export const ROOT_TOKEN = 'Zr7-the-root-token-of-this-test-Qx2'
export const KEYS = {
  'the right key': keyOf(1),
  'a wrong key': keyOf(2),
  'a key that is too long': `${keyOf(3)}${keyOf(4)}`,
  'a key without padding': keyOf(5).replace(/=+$/, ''),
  'no base64': `?${keyOf(6).slice(0, -1)}`,
}
/** The content of records in the encrypted stream. */
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
/** A scope. */
export const EVERYTHING = {
  basins: { prefix: '' },
  streams: { prefix: '' },
  accessTokens: { prefix: '' },
  opGroups: {
    account: { read: true, write: true },
    basin: { read: true, write: true },
    stream: { read: true, write: true },
  },
}

/** Values that must not be disclosed. */
export const EVERYWHERE: readonly Place[] = ['answers', 'printed', 'errors', 'stored', 'handles']

/** Tokens and keys, also as the bytes that they encode. */
export function secretsOf(
  tokens: Readonly<Record<string, string>>,
  keys: Readonly<Record<string, string>>,
  texts: Readonly<Record<string, string>> = {},
): Secrets {
  const secretBytes = Object.entries({ ...tokens, ...keys })
    .map(([name, text]) => [`the bytes of ${name}`, Buffer.from(text, 'base64').subarray(0, 32)] as const)
    .filter(([, bytes]) => bytes.length === 32)
  return { ...tokens, ...keys, ...texts, ...Object.fromEntries(secretBytes) }
}

/** 32 bytes in base64, the same in each run, without a pattern. */
export function keyOf(seed: number): string {
  let state = seed
  const bytes = Uint8Array.from({ length: 32 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 24
  })
  return Buffer.from(bytes).toString('base64')
}
