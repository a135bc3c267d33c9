const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? 0xedb8_8320 ^ (rest >>> 1) : rest >>> 1
  return rest
})

/** CRC-32 as gzip has it. `previous` is the checksum of what came before. */
export function crc32(data: Uint8Array, previous = 0): number {
  let crc = ~previous
  for (let i = 0; i < data.length; i++) crc = TABLE[(crc ^ data[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}
