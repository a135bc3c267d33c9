/** Orders strings as their UTF-8 bytes do (by code point), which differs from `<` on surrogate pairs. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    const xIsSurrogate = x >= 0xd800 && x <= 0xdfff
    const yIsSurrogate = y >= 0xd800 && y <= 0xdfff
    if (xIsSurrogate !== yIsSurrogate) return xIsSurrogate ? 1 : -1
    return x - y
  }
  return a.length - b.length
}
