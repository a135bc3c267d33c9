import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import type { SequencedRecord } from '../../../../src/model/record.ts'
import { decodeError } from '../../../../src/wire/decode-error.ts'
import {
  decodeAppendAck,
  decodeReadBatch,
  positionOf,
  withCommand,
} from '../../../../src/wire/decode-records.ts'
import { AppendAckSchema, ReadBatchSchema } from '../../../../src/wire/gen/records_pb.ts'
import { tailJson } from '../../../../src/wire/json-records.ts'
import { MalformedResponse, parseResponse, recordOf } from '../../../../src/wire/response-json.ts'
import { checkNumbers, equal, ok } from '../harness/assertions.ts'
import { nothing, type Refuses } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { fencingToken, integer, record, text } from '../models.ts'

/** Responses of a server to the client. An invalid response must not be accepted. */

const malformed: Refuses = (error) => error instanceof MalformedResponse

export const answeredTail = target({
  name: 'answered-tail',
  models: fc.record({ seqNum: integer, timestamp: integer }),
  encode: tailJson,
  decode: (input: string) => positionOf(recordOf(parseResponse(input), 'body').tail),
  means: (tail) => tail,
  refuses: malformed,
  verify: checkNumbers,
  words: ['"tail":', '"seq_num":', '"timestamp":', '{}', 'null'],
})

export const answeredError = target({
  name: 'answered-error',
  models: fc.record({ code: fc.constantFrom('invalid', 'stream_not_found'), message: text }),
  encode: (error) => JSON.stringify(error),
  decode: (input: string) => decodeError(input),
  refuses: nothing,
  verify: (error) => {
    const length = (error?.message.length ?? 0) + (error?.sentCode.length ?? 0)
    ok(length < 2500, 'the message repeats all of a long answer')
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
  decode: (input: string) => decodeError(input),
  refuses: nothing,
  words: ['"seq_num_mismatch":', '"fencing_token_mismatch":', '""', '{}'],
})

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
  decode: (input: Uint8Array) => decodeReadBatch(input).records,
  means: (records) =>
    records.map(({ seqNum, timestamp, headers, body }) => withCommand(seqNum, timestamp, headers, body)),
  refuses: malformed,
  verify(records) {
    for (const { seqNum, timestamp } of records) checkNumbers([seqNum, timestamp])
    equal(decodeReadBatch(readBatch(records)).records, records, 'the records, written and read again')
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
  decode: (input: Uint8Array) => decodeAppendAck(input).end,
  means: (end) => end,
  refuses: malformed,
  verify: checkNumbers,
})
