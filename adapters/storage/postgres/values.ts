/** A column of type bigint: drivers return text, a number or a `bigint`. */
export function numberOf(value: unknown): number {
  return Number(value)
}

/** A column of type bigint that may be null. */
export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}

/** A column of type bytea that is encoded with `encode(data, 'base64')`, in memory of its own. */
export function bytesOfBase64(value: unknown): Uint8Array {
  const text = String(value)
  if (typeof Buffer !== 'function') return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  const bytes = Buffer.from(text, 'base64')
  // Small buffers are parts of one that all share.
  return bytes.length === bytes.buffer.byteLength ? new Uint8Array(bytes.buffer) : new Uint8Array(bytes)
}

/** A column of type bytea. Some drivers return the text form of PostgreSQL. */
export function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  const text = String(value)
  const bytes = new Uint8Array((text.length - 2) / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(2 * i + 2, 2 * i + 4), 16)
  return bytes
}

/** Bytes as a member of JSON, which SQL decodes with `decode(text, 'hex')`. */
export function hexOf(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}
