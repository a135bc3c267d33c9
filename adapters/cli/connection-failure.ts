import { printable } from './errors.ts'

export interface ConnectionFailure {
  readonly reason: string
  /** Whether the request cannot have reached a server. */
  readonly wasNotSent: boolean
  /** Whether nothing listens on the port. */
  readonly isRefused: boolean
}

/** Errors before the first byte of a request, in words. The codes are those of Node. */
const NOT_SENT: Readonly<Record<string, string | undefined>> = {
  ECONNREFUSED: 'connection refused',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not use TLS; try a URL that begins with http:',
}

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Describes why a `fetch` failed. */
export function connectionFailure(error: unknown): ConnectionFailure {
  const { cause } = error as { cause?: { code?: unknown; message?: unknown } }
  const code = String(cause?.code)
  const known = Object.hasOwn(NOT_SENT, code) ? NOT_SENT[code] : undefined
  const isUntrusted = UNTRUSTED.has(code)
  const message = printable(String(cause?.message || (error as Error).message).trim())
  return {
    reason: known ?? (isUntrusted ? `${message}; set NODE_EXTRA_CA_CERTS to trust it` : message),
    wasNotSent: known !== undefined || isUntrusted || code === 'ENOTFOUND',
    isRefused: code === 'ECONNREFUSED',
  }
}
