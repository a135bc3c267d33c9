import { utf8 } from '../../src/model/bytes.ts'
import { TextLines } from '../../src/storage/text-lines.ts'

/** Lines of a text that begins after `offset` other bytes. */
export function linesOf(bodies: readonly string[], offset = 0): TextLines {
  const text = utf8(`${bodies.join('\n')}\n`)
  const bytes = new Uint8Array(offset + text.length).fill(0xff)
  bytes.set(text, offset)
  let end = offset - 1
  const ends = Uint32Array.from(bodies, (body) => (end += 1 + utf8(body).length))
  return new TextLines(bytes, offset, ends)
}
