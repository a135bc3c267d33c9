import { KEY_CHARACTERS_MAX } from '../../src/model/encryption-key.ts'
import { invalidHeader } from './header-text.ts'
import type { RequestContext } from './request-context.ts'

/**
 * The header `svc-encryption-key`, undecoded: only a stream with a cipher looks into it. Throws 400 `bad_header` when it is empty or too
 * long, on plain streams too (wire-behaviour.md 10.2).
 */
export function encryptionKey(context: RequestContext): string | undefined {
  const key = context.vendorHeader('encryption-key')?.trim()
  if (key === undefined || (key.length >= 1 && key.length <= KEY_CHARACTERS_MAX)) return key
  const name = context.vendorHeaderName('encryption-key')
  throw invalidHeader(name, `key material length ${key.length} is out of range`)
}
