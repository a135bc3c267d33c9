const POLYNOMIAL = 0xedb8_8320

/** The remainders of all bytes. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0)
  return remainder
})

/** Returns the CRC-32 of bytes, continued from that of the bytes before them. */
export function foldChecksum(bytes: Uint8Array, before = 0): number {
  let crc = ~before
  for (let index = 0; index < bytes.length; index++) {
    crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[index]!) & 0xff]!
  }
  return ~crc >>> 0
}
