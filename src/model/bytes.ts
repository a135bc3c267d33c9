const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lossyDecoder = new TextDecoder('utf-8', { ignoreBOM: true })

export const EMPTY_BYTES: Uint8Array = new Uint8Array(0)

export function utf8(text: string): Uint8Array {
  return text.length === 0 ? EMPTY_BYTES : encoder.encode(text)
}

/** Length of `text` in UTF-8, without encoding it. A lone surrogate counts as the replacement character (3 bytes). */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) length += 1
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) {
      length += 2
      i++
    } else length += 2
  }
  return length
}

/** Decodes UTF-8, or returns undefined when the bytes are not UTF-8. A leading byte order mark is kept. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes UTF-8 with U+FFFD for each ill-formed part, never failing (wire-behaviour.md 7.3). */
export function lossyTextOf(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : lossyDecoder.decode(bytes)
}

/** True when the text holds no lone surrogate, so that it survives a round trip through UTF-8. */
export function isWellFormed(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0xd800 || unit > 0xdfff) continue
    if (unit >= 0xdc00 || !isLowSurrogate(text.charCodeAt(i + 1))) return false
    i++
  }
  return true
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}
