import { invalidHeader } from './header-text.ts'
import type { RequestContext } from './request-context.ts'

/** 32 bytes in base64. */
const KEY_CHARACTERS_MAX = 44

/** Checks the form of `svc-encryption-key`, on plain streams too (wire-behaviour.md 10.2). Throws 400 `bad_header`. */
export function checkEncryptionKey(context: RequestContext): void {
  const length = context.vendorHeader('encryption-key')?.trim().length
  if (length === undefined || (length >= 1 && length <= KEY_CHARACTERS_MAX)) return
  const name = context.vendorHeaderName('encryption-key')
  throw invalidHeader(name, `key material length ${length} is out of range`)
}
