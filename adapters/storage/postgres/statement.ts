/** A statement that is run often, so that a server that can keeps its plan. */
export interface Statement {
  readonly text: string
  /** Follows from the text: behind some poolers, processes find the statements that others have prepared. */
  readonly name: string
}

/** Planning takes a server longer than a small statement itself. */
export function prepared(text: string): Statement {
  return { text, name: `headwater_${hashOf(text)}` }
}

/** 53 bits, because names are cut at 63 bytes (cyrb53). */
function hashOf(text: string): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    a = Math.imul(a ^ unit, 2_654_435_761)
    b = Math.imul(b ^ unit, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909)
  return (2 ** 32 * (b & 0x1f_ffff) + (a >>> 0)).toString(36)
}
