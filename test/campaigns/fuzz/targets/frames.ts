import fc from 'fast-check'
import { concatBytes, utf8 } from '../../../../src/model/bytes.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { crc32 } from '../../../../src/wire/codecs.ts'
import { compress } from '../../../../src/wire/compression.ts'
import { FRAME_PAYLOAD_MAX, type Frame, FrameDecoder } from '../../../../src/wire/frame.ts'
import { encodeMessageFrame, encodeTerminalFrame, messageOf } from '../../../../src/wire/session-frames.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { bytes, text } from '../models.ts'

const message = fc.record({
  kind: fc.constant('message' as const),
  compression: fc.constantFrom('zstd', 'gzip', undefined),
  reconnectAdvised: fc.boolean(),
  payload: bytes,
})
const terminal = fc.record({
  kind: fc.constant('terminal' as const),
  status: fc.nat(0xffff),
  body: text,
})
const session: fc.Arbitrary<Frame[]> = fc
  .tuple(fc.array(message, { maxLength: 4 }), fc.option(terminal, { nil: undefined }))
  .map(([messages, last]) => (last === undefined ? messages : [...messages, last]))

function encoded(frames: readonly Frame[]): Uint8Array {
  return concatBytes([
    new Uint8Array(0),
    ...frames.map((frame) =>
      frame.kind === 'message'
        ? encodeMessageFrame(frame.payload, frame)
        : encodeTerminalFrame(frame.status, frame.body),
    ),
  ])
}

/** All frames and then the end of the session. Frames before an error count as well. */
function decoded(chunks: readonly Uint8Array[]): Frame[] {
  const frames: Frame[] = []
  const reader = new FrameDecoder()
  for (const chunk of chunks) frames.push(...reader.decode(chunk))
  reader.end()
  return frames
}

/** Splits the bytes as a network might. The split depends on the bytes, so that a case can be repeated. */
function pieces(input: Uint8Array): Uint8Array[] {
  const random = new Prng(crc32(input))
  const chunks: Uint8Array[] = []
  for (let at = 0; at < input.length; ) {
    const length = random.chance(0.5) ? 1 + random.below(3) : 1 + random.below(input.length)
    chunks.push(input.subarray(at, at + length))
    at += length
  }
  return chunks
}

const LENGTHS = [0, 1, 2, 3, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 1, FRAME_PAYLOAD_MAX + 2, 0xff_ff_ff]
const PREFIXES = LENGTHS.flatMap((length) =>
  [0x00, 0x10, 0x20, 0x40, 0x60, 0x80, 0xff].map((flag) =>
    Uint8Array.of(length >> 16, length >> 8, length, flag),
  ),
)

export const frames = target({
  name: 'frames',
  models: session,
  encode: encoded,
  decode: (input: Uint8Array) => decoded(pieces(input)),
  means: (of) => of,
  refuses: headwaterError('bad_frame'),
  verify(value, input) {
    equal(decoded([input]), value, 'the frames of one piece')
    // The low bits of a flag have no meaning, and neither have those after the first in a terminal frame.
    equal(decoded([encoded(value)]), value, 'the frames, encoded again')
  },
  // The buffer doubles from 16 KiB on, and does not exceed what has arrived.
  memory: { perInputByte: 64, beside: 40_000 },
  words: PREFIXES,
  share: 40,
})

/** The messages in the frames of a session. */
export const sessionMessages = target({
  name: 'session-messages',
  models: fc.tuple(fc.constantFrom('gzip' as const, 'zstd' as const, undefined), bytes),
  encode: async ([compression, payload]) =>
    encodeMessageFrame(compression === undefined ? payload : await compress(compression, payload), {
      compression,
    }),
  async decode(input: Uint8Array) {
    const messages: Uint8Array[] = []
    for (const frame of decoded([input])) {
      messages.push(frame.kind === 'message' ? await messageOf(frame) : utf8(frame.body))
    }
    return messages
  },
  means: ([, payload]) => [payload],
  refuses: headwaterError('bad_frame'),
  verify(messages) {
    for (const { length } of messages) ok(length <= FRAME_PAYLOAD_MAX, `a message of ${length} bytes`)
  },
  memory: { perInputByte: 1200, beside: 3 * FRAME_PAYLOAD_MAX },
  words: PREFIXES,
  share: 5,
})
