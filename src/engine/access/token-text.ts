import { accessTokenIdProblem } from '../../model/access.ts'
import { textOf, utf8 } from '../../model/bytes.ts'
import { ACCESS_TOKEN_ID_BYTES_MAX } from '../../model/limits.ts'

const SECRET_BYTES = 32
/** Longest token that is looked at, issued or of the owner's own making. */
export const TOKEN_CHARACTERS_MAX = 1024
export const ROOT_TOKEN_CHARACTERS_MIN = 16
const ISSUED = /^[A-Za-z0-9+/]{44,}={0,2}$/
const ISSUED_CHARACTERS_MAX = Math.ceil((SECRET_BYTES + ACCESS_TOKEN_ID_BYTES_MAX) / 3) * 4

/**
 * An issued token: 256 random bits and the token's id, in base64. The id is there so that the token is found by it, and not by
 * anything that is secret.
 */
export function newToken(id: string): string {
  return toBase64(new Uint8Array([...randomSecret(), ...utf8(id)]))
}

export function newRootToken(): string {
  return toBase64(randomSecret())
}

/** The id in an issued token, or undefined when this can't be one. */
export function idOfToken(token: string): string | undefined {
  if (token.length > ISSUED_CHARACTERS_MAX || !ISSUED.test(token) || token.length % 4 !== 0) return undefined
  const bytes = Uint8Array.from(atob(token), (character) => character.charCodeAt(0))
  const id = textOf(bytes.subarray(SECRET_BYTES))
  return id === undefined || accessTokenIdProblem(id) !== undefined ? undefined : id
}

/** Why this can't be a root token; undefined when it can. Only the storage knows whether it was issued for something else. */
export function rootTokenProblem(token: string): string | undefined {
  const isOne =
    typeof token === 'string' &&
    /^[!-~]*$/.test(token) &&
    token.length >= ROOT_TOKEN_CHARACTERS_MIN &&
    token.length <= TOKEN_CHARACTERS_MAX
  if (isOne) return undefined
  const range = `${ROOT_TOKEN_CHARACTERS_MIN} to ${TOKEN_CHARACTERS_MAX}`
  return `the root token must have ${range} characters, visible ASCII without spaces`
}

function randomSecret(): Uint8Array {
  return globalThis.crypto.getRandomValues(new Uint8Array(SECRET_BYTES))
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}
