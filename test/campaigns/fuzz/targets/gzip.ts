import { gzipSync } from 'node:zlib'
import * as fflate from 'fflate'
import { nodeGzip, nodeZlib } from '../../../../src/wire/codec-node.ts'
import { crc32, portableGzip } from '../../../../src/wire/codecs.ts'
import { codecTarget, OUTPUT_BYTES_MAX } from '../codecs.ts'
import { equal } from '../harness/assertions.ts'

const node = nodeGzip(nodeZlib()!)
const MEMBER_START = Buffer.of(0x1f, 0x8b)

/**
 * The portable codec ignores reserved bits and incomplete codes. Its output still has to match the checksum,
 * which is visible if there is one member.
 */
function checkTrailer(value: Uint8Array, input: Uint8Array): void {
  const bytes = Buffer.from(input)
  if (bytes.includes(MEMBER_START, 1)) return
  const [crc, length] = [bytes.readUInt32LE(bytes.length - 8), bytes.readUInt32LE(bytes.length - 4)]
  equal([crc, length], [crc32(value), value.length], 'the checksum and the length')
}

export const gzip = codecTarget({
  name: 'gzip',
  codecs: [node, portableGzip(fflate)],
  compressPart: (part) => node.compress(part),
  checkAlone: checkTrailer,
  words: [
    Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
    Uint8Array.of(0x1f, 0x8b, 8, 0x1f),
    Uint8Array.of(3, 0),
    Uint8Array.of(0, 0, 0, 0xff, 0xff),
    // The largest permitted output, and the beginning of far too much.
    new Uint8Array(gzipSync(new Uint8Array(OUTPUT_BYTES_MAX))),
    new Uint8Array(gzipSync(new Uint8Array(8 * 1024 * 1024))).subarray(0, 4000),
  ],
  // The portable codec allocates a buffer for each member before it reads anything of it.
  memory: { perInputByte: 6000, beside: 600_000 },
})
