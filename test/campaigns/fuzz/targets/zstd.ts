import { concatBytes } from '../../../../src/model/bytes.ts'
import { nodeZlib, nodeZstd } from '../../../../src/wire/codec-node.ts'
import { loadZstdBinding, portableZstd } from '../../../../src/wire/codec-zstd.ts'
import { WINDOW_BYTES_MAX, zstdFrames } from '../../../../src/wire/zstd-frames.ts'
import {
  blockHeader,
  HOSTILE_ZSTD,
  rawBlock,
  rleBlock,
  skippableFrame,
  zstdFrame,
} from '../../../wire/zstd-data.ts'
import { type CompressPart, codecTarget, compressed, OUTPUT_BYTES_MAX, parts } from '../codecs.ts'
import { equal, ok } from '../harness/assertions.ts'
import { compressedDataError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'

const portable = portableZstd(loadZstdBinding)
const node = nodeZstd(nodeZlib()!)

const WORDS = [
  zstdFrame({ contentSize: 64n * 1024n * 1024n, blocks: [rleBlock(1, 131_072, true)] }),
  zstdFrame({ window: 0xff, blocks: [rleBlock(1, 131_072, false)] }),
  zstdFrame({ window: 11 << 3, blocks: [rawBlock(Uint8Array.of(1, 2, 3), true)] }),
  zstdFrame({ window: 0, blocks: [] }),
  rleBlock(0, 131_072, false),
  rleBlock(0, 2, true),
  rawBlock(Uint8Array.of(1, 2, 3), false),
  Uint8Array.from(blockHeader(3, 0, true)),
  skippableFrame(Uint8Array.of(1)),
  skippableFrame(new Uint8Array(0)).fill(0xff, 4),
  Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd),
  ...HOSTILE_ZSTD.map(([, data]) => data).filter(({ length }) => length <= 4096),
]

/** Alternates between one piece and a stream that does not declare its size. */
const compressPart: CompressPart = (part, index) =>
  index % 2 === 0 ? portable.compress(part) : streamed(part)

const binding = loadZstdBinding()

async function streamed(part: Uint8Array): Promise<Uint8Array> {
  const stream = new (await binding).ZstdCompressStreamBinding()
  const pieces: Uint8Array[] = []
  const keep = (piece: Uint8Array): void => {
    pieces.push(piece)
  }
  stream.begin(3)
  stream.transform(part, keep)
  stream.end(keep)
  stream.delete()
  return concatBytes(pieces)
}

export const zstd = codecTarget({
  name: 'zstd',
  codecs: node === undefined ? [portable] : [node, portable],
  compressPart,
  checkAlone: () => {},
  words: WORDS,
  memory: { perInputByte: 1200, beside: 300_000 },
})

/** The positions of frames and blocks in zstd data, which are checked before a decoder runs. */
export const zstdLayout = target({
  name: 'zstd-layout',
  models: parts,
  encode: (all) => compressed(all, compressPart),
  decode: (input: Uint8Array) => zstdFrames(input, OUTPUT_BYTES_MAX),
  refuses: compressedDataError,
  verify(frames, input) {
    let declared = 0
    let length = 0
    for (const { bytes, contentSize, cuts } of frames) {
      declared += contentSize ?? 0
      length += bytes.length
      const ascending = cuts.toSorted((a, b) => a - b)
      equal(ascending, cuts, 'the order of the cuts')
      ok((cuts[0] ?? 1) > 0 && (cuts.at(-1) ?? 0) < bytes.length, 'a cut lies outside of its frame')
      ok(windowOf(bytes) <= WINDOW_BYTES_MAX, 'a frame asks for a large window')
    }
    ok(declared <= OUTPUT_BYTES_MAX, 'frames make more than they may')
    ok(length <= input.length, 'frames are longer than what they are in')
  },
  words: WORDS,
  share: 20,
})

/** Of a frame that is not a single segment, whose window would be its content. */
function windowOf(frame: Uint8Array): number {
  const isSingleSegment = (frame[4]! & 0x20) !== 0
  if (isSingleSegment) return 0
  const base = 2 ** (10 + (frame[5]! >> 3))
  return base + (base / 8) * (frame[5]! & 7)
}
