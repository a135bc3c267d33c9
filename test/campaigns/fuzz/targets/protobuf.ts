import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import type { AppendInput } from '../../../../src/model/append-input.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { BATCH_RECORDS_MAX } from '../../../../src/model/limits.ts'
import type { Header } from '../../../../src/model/record.ts'
import { AppendInputSchema } from '../../../../src/wire/gen/records_pb.ts'
import { decodeAppendInput } from '../../../../src/wire/proto-records.ts'
import { equal, outcomeOf } from '../harness/assertions.ts'
import { varint } from '../harness/mutate-bytes.ts'
import { headwaterError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { bytes, fencingToken, integer } from '../models.ts'
import { checkBatch } from './json-append.ts'

interface ProtoRecord {
  readonly timestamp: number | undefined
  /** Undefined for none. */
  readonly headers: readonly Header[] | undefined
  readonly body: Uint8Array
}

interface ProtoAppend extends AppendInput {
  readonly inputs: readonly ProtoRecord[]
}

const append: fc.Arbitrary<ProtoAppend> = fc.record({
  inputs: fc.array(
    fc.record({
      timestamp: fc.option(integer, { nil: undefined }),
      headers: fc.option(fc.array(fc.tuple(bytes, bytes), { minLength: 1, maxLength: 3 }), {
        nil: undefined,
      }),
      body: bytes,
    }),
    { maxLength: 4 },
  ),
  conditions: fc.record({
    matchSeqNum: fc.option(integer, { nil: undefined }),
    fencingToken: fc.option(fencingToken, { nil: undefined }),
  }),
})

function encoded({ inputs, conditions }: ProtoAppend): Uint8Array {
  const { matchSeqNum, fencingToken: token } = conditions
  const message = create(AppendInputSchema, {
    records: inputs.map(({ timestamp, headers, body }) => ({
      ...(timestamp !== undefined && { timestamp: BigInt(timestamp) }),
      headers: headers?.map(([name, value]) => ({ name, value })) ?? [],
      body,
    })),
    ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
    ...(token !== undefined && { fencingToken: token }),
  })
  return toBinary(AppendInputSchema, message)
}

/** The result of the generated code. Of a batch that is far too long, the part that is kept. */
function oracle(data: Uint8Array): AppendInput {
  const { records, matchSeqNum, fencingToken: token } = fromBinary(AppendInputSchema, data)
  return {
    inputs: records.slice(0, BATCH_RECORDS_MAX + 1).map(({ timestamp, headers, body }) => ({
      timestamp: timestamp === undefined ? undefined : Number(timestamp),
      headers: headers.length > 0 ? headers.map(({ name, value }) => [name, value] as const) : undefined,
      body,
    })),
    conditions: {
      matchSeqNum: matchSeqNum === undefined ? undefined : Number(matchSeqNum),
      fencingToken: token,
    },
  }
}

const TAGS = [0x08, 0x0a, 0x0b, 0x0c, 0x0d, 0x09, 0x10, 0x12, 0x18, 0x1a, 0x20, 0x22, 0x23, 0x24, 0x3d, 0x07]

export const appendInput = target({
  name: 'append-input',
  models: append,
  encode: encoded,
  decode: (input: Uint8Array) => decodeAppendInput(input, 'bad_proto'),
  means: (model) => model,
  refuses: headwaterError('bad_proto', 'invalid'),
  verify(value, input) {
    const expected = outcomeOf(() => oracle(input))
    // It rejects tags padded to more than five bytes; the service and this decoder accept them.
    if ('value' in expected || !/illegal tag/.test(String(expected.error)))
      equal({ value }, expected, 'what the generated code reads')
    checkBatch(value)
  },
  words: [
    ...TAGS.map((tag) => Uint8Array.of(tag)),
    varint(2n ** 32n - 1n),
    // An unknown group in a group, the largest field number, and ill-formed UTF-8.
    Uint8Array.of(0x2b, 0x2b, 0x2c, 0x2c),
    varint((2n ** 29n - 1n) * 8n),
    Uint8Array.of(0x1a, 2, 0xed, 0xa0),
    utf8('\0'),
  ],
  share: 80,
})
