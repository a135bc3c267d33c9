import { accessTokenIdProblem } from '../../model/access.ts'
import { equalSecrets, textOf, utf8 } from '../../model/bytes.ts'
import { HeadwaterError } from '../../model/errors.ts'
import { ACCESS_TOKEN_ID_BYTES_MAX } from '../../model/limits.ts'
import { trackExternalWork } from '../../runtime/clock.ts'
import { nodeCrypto } from '../../runtime/node.ts'

const node = nodeCrypto()

const SECRET_BYTES = 32
/** Longest token that is accepted, whether issued or a root token. */
export const TOKEN_CHARACTERS_MAX = 1024
export const ROOT_TOKEN_CHARACTERS_MIN = 16
const ISSUED = /^[A-Za-z0-9+/]{44,}={0,2}$/
const ISSUED_CHARACTERS_MAX = Math.ceil((SECRET_BYTES + ACCESS_TOKEN_ID_BYTES_MAX) / 3) * 4

/**
 * Makes an issued token: 256 random bits and the token's id, in base64. The id locates the document, so that
 * no secret does.
 */
export function newToken(id: string): string {
  return toBase64(new Uint8Array([...randomSecret(), ...utf8(id)]))
}

export function newRootToken(): string {
  return toBase64(randomSecret())
}

/** Returns the id in an issued token, or undefined when the text cannot be one. */
export function idOfToken(token: string): string | undefined {
  if (token.length > ISSUED_CHARACTERS_MAX || !ISSUED.test(token) || token.length % 4 !== 0) return undefined
  const characters = atob(token)
  const bytes = new Uint8Array(characters.length)
  // Not `Uint8Array.from`, which takes ten times as long.
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i)
  const id = textOf(bytes.subarray(SECRET_BYTES))
  return id === undefined || accessTokenIdProblem(id) !== undefined ? undefined : id
}

/**
 * Returns what is wrong with the text of a root token. Whether it was issued to somebody else only the
 * storage knows.
 */
export function rootTokenProblem(token: string): string | undefined {
  const isValid =
    typeof token === 'string' &&
    /^[!-~]*$/.test(token) &&
    token.length >= ROOT_TOKEN_CHARACTERS_MIN &&
    token.length <= TOKEN_CHARACTERS_MAX
  if (isValid) return undefined
  const range = `${ROOT_TOKEN_CHARACTERS_MIN} to ${TOKEN_CHARACTERS_MAX}`
  return `the root token must have ${range} characters, visible ASCII without spaces`
}

/**
 * Returns the SHA-256 of a token in hexadecimal: by `node:crypto` where the runtime has it, else by
 * WebCrypto. Rejects with `unsupported` on an insecure page, where browsers provide neither.
 */
export async function tokenDigest(token: string): Promise<string> {
  const bytes = utf8(token)
  if (node !== undefined) return node.createHash('sha256').update(bytes).digest('hex')
  const subtle = globalThis.crypto?.subtle
  if (subtle === undefined) {
    throw new HeadwaterError(
      'unsupported',
      'access tokens need WebCrypto, which insecure pages lack: use https',
    )
  }
  const digest = await trackExternalWork(subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Compares two digests in constant time. */
export function isSameDigest(one: string, other: string): boolean {
  return equalSecrets(utf8(one), utf8(other))
}

function randomSecret(): Uint8Array {
  return globalThis.crypto.getRandomValues(new Uint8Array(SECRET_BYTES))
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}
