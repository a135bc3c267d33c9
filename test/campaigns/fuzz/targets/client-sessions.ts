import fc from 'fast-check'
import { connect } from '../../../../adapters/client/index.ts'
import { virtualClock } from '../../../../adapters/testing/index.ts'
import { concatBytes } from '../../../../src/model/bytes.ts'
import { type ErrorCode, HeadwaterError } from '../../../../src/model/errors.ts'
import type { SequencedRecord } from '../../../../src/model/record.ts'
import { encodeRecords } from '../../../../src/storage/block-codec.ts'
import { compress } from '../../../../src/wire/compression.ts'
import { FRAME_PAYLOAD_MAX } from '../../../../src/wire/frame.ts'
import { encodeMessageFrame, encodeTerminalFrame } from '../../../../src/wire/session-frames.ts'
import { HOSTILE_ZSTD } from '../../../wire/zstd-data.ts'
import { equal, ok } from '../harness/assertions.ts'
import { nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { sequence } from '../models.ts'

const SESSION = { headers: { 'content-type': 's2s/proto' } }
/** Ends the read for good if what is fuzzed breaks off. */
const END = encodeTerminalFrame(403, '{"code":"permission_denied","message":"over"}')

interface Received {
  readonly records: readonly SequencedRecord[]
  /** How the session ended. */
  readonly code: ErrorCode | undefined
}

/** Reads from a server whose response is the input. */
async function received(input: Uint8Array): Promise<Received> {
  const clock = virtualClock()
  let requests = 0
  const hw = await connect({
    url: 'http://localhost',
    fetch: async () => new Response((++requests === 1 ? input : END) as Uint8Array<ArrayBuffer>, SESSION),
    clock,
    random: () => 0.5,
  })
  const records: SequencedRecord[] = []
  let code: ErrorCode | undefined
  try {
    const stream = hw.basin('basin').stream('stream')
    let isOver = false
    const end = () => {
      isOver = true
    }
    const reading = (async () => {
      for await (const record of stream.read({ seqNum: 0 }, { as: 'bytes' })) {
        const { seqNum, timestamp, headers, body } = record
        records.push({ seqNum, timestamp, headers, body })
      }
    })()
    reading.then(end, end)
    while (!isOver) await clock.advance(1000)
    await reading.catch((error: unknown) => {
      if (!HeadwaterError.is(error)) throw error
      code = error.code
    })
  } finally {
    await hw.close()
  }
  equal(clock.pending, 0, 'how many timers are left')
  return { records, code }
}

/** As the first records of a stream. */
function numbered(records: readonly SequencedRecord[]): SequencedRecord[] {
  return records.map((record, seqNum) => ({ ...record, seqNum }))
}

/** The client, reading from a hostile server. */
export const clientSessions = target({
  name: 'client-sessions',
  models: fc.tuple(fc.constantFrom('gzip' as const, 'zstd' as const, undefined), sequence),
  async encode([compression, records]) {
    const message = encodeRecords(numbered(records))
    const payload = compression === undefined ? message : await compress(compression, message)
    return concatBytes([encodeMessageFrame(payload, { compression }), END])
  },
  decode: received,
  means: ([, records]) => ({ records: numbered(records), code: 'permission_denied' }),
  refuses: nothing,
  verify({ records }) {
    ok(
      records.every(({ seqNum }, i) => i === 0 || seqNum > records[i - 1]!.seqNum),
      'the order of the records',
    )
  },
  memory: { perInputByte: 2000, beside: 4 * FRAME_PAYLOAD_MAX },
  words: [
    END,
    ...HOSTILE_ZSTD.flatMap(([, data]) =>
      data.length > 4096 ? [] : [encodeMessageFrame(data, { compression: 'zstd' })],
    ),
  ],
  share: 3,
})
