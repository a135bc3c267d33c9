import zlib from 'node:zlib'
import fc from 'fast-check'
import { expect } from 'vitest'
import { connect } from '../../../adapters/client/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { concatBytes, utf8 } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { encodeRecords } from '../../../src/storage/block-codec.ts'
import { compress } from '../../../src/wire/compression.ts'
import {
  encodeMessageFrame,
  encodeTerminalFrame,
  FRAME_PAYLOAD_MAX,
  type Frame,
  FrameDecoder,
  messageOf,
} from '../../../src/wire/frame.ts'
import { HOSTILE_ZSTD } from '../../wire/zstd-data.ts'
import { chunksOf } from './chunks.ts'
import { fuzzBytes } from './decoder.ts'
import { bytes, sequence, text } from './models.ts'
import { withCode } from './outcomes.ts'

const message = fc.record({
  kind: fc.constant('message' as const),
  compression: fc.constantFrom('zstd', 'gzip', undefined),
  reconnectAdvised: fc.boolean(),
  payload: bytes,
})
const terminal = fc.record({ kind: fc.constant('terminal' as const), status: fc.nat(0xffff), body: text })
const session: fc.Arbitrary<Frame[]> = fc
  .tuple(fc.array(message, { maxLength: 4 }), fc.array(terminal, { maxLength: 1 }))
  .map(([messages, last]) => [...messages, ...last])

function encoded(frames: readonly Frame[]): Uint8Array {
  const parts = frames.map((frame) =>
    frame.kind === 'message'
      ? encodeMessageFrame(frame.payload, frame)
      : encodeTerminalFrame(frame.status, frame.body),
  )
  return concatBytes([new Uint8Array(0), ...parts])
}

/** All frames and then the end of the session. Frames before an error count as well. */
function decoded(chunks: readonly Uint8Array[]): Frame[] {
  const decoder = new FrameDecoder()
  const frames = chunks.flatMap((chunk) => [...decoder.decode(chunk)])
  decoder.end()
  return frames
}

const LENGTHS = [0, 1, 2, 3, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 1, FRAME_PAYLOAD_MAX + 2, 0xff_ff_ff]
const FLAGS = [0x00, 0x10, 0x20, 0x40, 0x60, 0x80, 0xff]
const PREFIXES = LENGTHS.flatMap((length) =>
  FLAGS.map((flag) => Uint8Array.of(length >> 16, length >> 8, length, flag)),
)

fuzzBytes('frames of a session', {
  models: session,
  encode: encoded,
  decode: (input) => decoded(chunksOf(input)),
  means: (frames) => frames,
  rejects: withCode('bad_frame'),
  verify(frames, input) {
    expect(decoded([input]), 'the frames of one piece').toEqual(frames)
    // The low bits of a flag have no meaning, and neither have those after the first in a terminal frame.
    expect(decoded([encoded(frames)]), 'the frames, encoded again').toEqual(frames)
  },
  // The buffer doubles from 16 KiB on, and does not exceed what has arrived.
  memory: { perInputByte: 64, beside: 40_000 },
  words: PREFIXES,
})

const compression = fc.constantFrom('gzip' as const, 'zstd' as const, undefined)

async function encodedMessage(
  algorithm: 'gzip' | 'zstd' | undefined,
  payload: Uint8Array,
): Promise<Uint8Array> {
  const content = algorithm === undefined ? payload : await compress(algorithm, payload)
  return encodeMessageFrame(content, { compression: algorithm })
}

fuzzBytes('messages in the frames of a session', {
  models: fc.tuple(compression, bytes),
  encode: ([algorithm, payload]) => encodedMessage(algorithm, payload),
  async decode(input) {
    const messages: Uint8Array[] = []
    for (const frame of decoded([input])) {
      messages.push(frame.kind === 'message' ? await messageOf(frame) : utf8(frame.body))
    }
    return messages
  },
  means: ([, payload]) => [payload],
  rejects: withCode('bad_frame'),
  verify(messages) {
    for (const { length } of messages) expect(length).toBeLessThanOrEqual(FRAME_PAYLOAD_MAX)
  },
  memory: { perInputByte: 1200, beside: 3 * FRAME_PAYLOAD_MAX },
  words: PREFIXES,
})

const RESPONSE = { headers: { 'content-type': 'svcs/proto' } }
/** Ends the read for good if what is damaged breaks off. */
const END = encodeTerminalFrame(403, '{"code":"permission_denied","message":"over"}')

/** Reads from a server whose first response is the input. Resolves to the records and the end. */
async function received(input: Uint8Array) {
  const clock = virtualClock()
  const responses = [input]
  const hw = await connect({
    url: 'http://localhost',
    fetch: async () => new Response((responses.pop() ?? END) as Uint8Array<ArrayBuffer>, RESPONSE),
    clock,
    random: () => 0.5,
  })
  const records: SequencedRecord[] = []
  let ending: unknown
  const reading = (async () => {
    const stream = hw.basin('basin').stream('stream')
    for await (const record of stream.read({ seqNum: 0 }, { as: 'bytes' })) {
      const { seqNum, timestamp, headers, body } = record
      records.push({ seqNum, timestamp, headers, body })
    }
  })().then(
    () => {
      ending = 'the end'
    },
    (error: unknown) => {
      ending = error
    },
  )
  while (ending === undefined) await clock.advance(1000)
  await reading
  await hw.close()
  expect(clock.pending, 'timers that are left').toBe(0)
  return { records, code: HeadwaterError.is(ending) ? ending.code : ending }
}

/** Encodes records as the first ones of a stream. */
function numbered(records: readonly SequencedRecord[]): SequencedRecord[] {
  return records.map((record, seqNum) => ({ ...record, seqNum }))
}

/** What the client asks for: zstd only where the runtime has it. */
const asked = 'zstdCompressSync' in zlib ? compression : fc.constantFrom('gzip' as const, undefined)

fuzzBytes('responses of a hostile server to a client that reads', {
  models: fc.tuple(asked, sequence),
  async encode([algorithm, records]) {
    return concatBytes([await encodedMessage(algorithm, encodeRecords(numbered(records))), END])
  },
  decode: received,
  means: ([, records]) => ({ records: numbered(records), code: 'permission_denied' }),
  verify({ records, code }) {
    expect(typeof code, 'how the session ended').toBe('string')
    const seqNums = records.map(({ seqNum }) => seqNum)
    expect(seqNums, 'the order of the records').toEqual([...new Set(seqNums)].sort((a, b) => a - b))
  },
  memory: { perInputByte: 2000, beside: 4 * FRAME_PAYLOAD_MAX },
  isSlow: true,
  words: [
    END,
    ...HOSTILE_ZSTD.filter(([, data]) => data.length <= 4096).map(([, data]) =>
      encodeMessageFrame(data, { compression: 'zstd' }),
    ),
  ],
})
