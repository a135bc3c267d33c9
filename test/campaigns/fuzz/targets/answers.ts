import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import {
  ackEndOf,
  errorBodyOf,
  errorOf,
  mismatchOf,
  recordsOf,
  tailOf,
} from '../../../../adapters/transfer/responses.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../../src/model/record.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../../../src/wire/gen/records_pb.ts'
import { tailJson } from '../../../../src/wire/json-records.ts'
import { equal, ok } from '../harness/equal.ts'
import { checkNumbers } from '../harness/numbers.ts'
import { transferError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { fencingToken, integer, record, text } from '../models.ts'

/** Responses of a service to an export or an import. An invalid response must not be accepted. */

const ABOUT = 'stream s of basin b'

export const answeredTail = target({
  name: 'answered-tail',
  models: fc.record({ seqNum: integer, timestamp: integer }),
  encode: tailJson,
  decode: (input: string) => tailOf(utf8(input), ABOUT),
  means: (tail) => tail,
  refuses: transferError,
  verify: checkNumbers,
  words: ['"tail":', '"seq_num":', '"timestamp":', '{}', 'null'],
})

export const answeredError = target({
  name: 'answered-error',
  models: fc.record({ code: fc.constantFrom('invalid', 'stream_not_found'), message: text }),
  encode: (error) => JSON.stringify(error),
  decode: (input: string) => ({
    error: errorBodyOf(utf8(input)),
    refusal: errorOf({ status: 404, body: utf8(input) }, ABOUT),
  }),
  refuses: transferError,
  verify({ error, refusal: told }) {
    equal(told.code, error?.code, 'the code that is told')
    ok(told.message.length < 2500, 'the message repeats all of a long answer')
  },
  words: ['"code":', '"message":', '{}', 'x'.repeat(2000), '"__proto__":'],
})

export const answeredMismatch = target({
  name: 'answered-mismatch',
  models: fc.oneof(
    fc.record({ seq_num_mismatch: integer }),
    fc.record({ fencing_token_mismatch: fencingToken }),
  ),
  encode: (mismatch) => JSON.stringify(mismatch),
  decode: (input: string) => mismatchOf(utf8(input), ABOUT),
  refuses: transferError,
  words: ['"seq_num_mismatch":', '"fencing_token_mismatch":', '""', '{}'],
})

/** With a tail, which stored blocks do not have. */
function readBatch(records: readonly SequencedRecord[]): Uint8Array {
  const message = create(ReadBatchSchema, {
    records: records.map(({ seqNum, timestamp, headers, body }) => ({
      seqNum: BigInt(seqNum),
      timestamp: BigInt(timestamp),
      headers: headers.map(([name, value]) => ({ name, value })),
      body,
    })),
    tail: { seqNum: 9n, timestamp: 9n },
  })
  return toBinary(ReadBatchSchema, message)
}

export const answeredRecords = target({
  name: 'answered-records',
  models: fc.array(record, { maxLength: 4 }),
  encode: readBatch,
  decode: (input: Uint8Array) => recordsOf(input, ABOUT),
  means: (records) => records,
  refuses: transferError,
  verify(records) {
    for (const { seqNum, timestamp } of records) checkNumbers([seqNum, timestamp])
    equal(recordsOf(readBatch(records), ABOUT), records, 'the records, written and read again')
  },
  memory: { perInputByte: 256, beside: 4096 },
  share: 20,
})

export const answeredAck = target({
  name: 'answered-ack',
  models: fc.record({ seqNum: integer, timestamp: integer }),
  encode: ({ seqNum, timestamp }) => {
    const end = { seqNum: BigInt(seqNum), timestamp: BigInt(timestamp) }
    return toBinary(AppendAckSchema, create(AppendAckSchema, { start: end, end, tail: end }))
  },
  decode: (input: Uint8Array) => ackEndOf(input, ABOUT),
  means: (end) => end,
  refuses: transferError,
  verify: checkNumbers,
})
