import { type BatchPut, ClassicLevel } from 'classic-level'

export async function openLevel(directory: string): Promise<ClassicLevel> {
  const level = new ClassicLevel(directory, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await level.open()
  return level
}

/** Records of a stream, in the order of their sequence numbers. */
export function keyOf(stream: number, seqNum: number): Buffer {
  const key = Buffer.allocUnsafe(10)
  key.writeUInt32BE(stream, 0)
  key.writeUIntBE(seqNum, 4, 6)
  return key
}

/** An array, because a chained batch makes a call into native code per record. */
export function putsOf(first: number, bodies: readonly Uint8Array[]): BatchPut[] {
  return bodies.map((value, index) => ({ type: 'put', key: keyOf(0, first + index), value }))
}
