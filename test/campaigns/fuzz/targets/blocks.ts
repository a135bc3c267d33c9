import { fromBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { concatBytes } from '../../../../src/model/bytes.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../../../src/storage/block-codec.ts'
import { recordSpans } from '../../../../src/storage/record-spans.ts'
import {
  decodeSegments,
  decodeSkeleton,
  encodeSegment,
  encodeSkeleton,
  isSealed,
  joinRecords,
  SEALED_FORMATS,
  type SealedSegment,
} from '../../../../src/storage/sealed-block.ts'
import { ReadBatchSchema } from '../../../../src/wire/gen/records_pb.ts'
import { equal, ok, outcomeOf } from '../harness/assertions.ts'
import { rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { record, sequence } from '../models.ts'

const TAGS = [0x0a, 0x08, 0x10, 0x1a, 0x22, 0x12].map((tag) => Uint8Array.of(tag))

export const plainBlock = target({
  name: 'plain-block',
  models: fc.array(record, { maxLength: 4 }),
  encode: encodeRecords,
  decode: (input: Uint8Array) => recordsOf(input),
  means: (records) => records,
  refuses: rangeError,
  verify(records, input) {
    equal(recordsOf(encodeRecords(records)), records, 'the records, written and read again')
    equal(records, generatedDecode(input), 'what the generated code reads')
    checkSpans(records, input)
  },
  words: TAGS,
  share: 60,
})

function generatedDecode(data: Uint8Array): SequencedRecord[] {
  return fromBinary(ReadBatchSchema, data).records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum: Number(seqNum),
    timestamp: Number(timestamp),
    headers: headers.map(({ name, value }) => [name, value] as const),
    body,
  }))
}

function checkSpans(records: readonly SequencedRecord[], data: Uint8Array): void {
  const spans = recordSpans(data)
  equal(spans.length, records.length, 'how many spans there are')
  for (const [i, { start, end, ...facts }] of spans.entries()) {
    const { seqNum, timestamp, headers, body } = records[i]!
    equal(recordsOf(data.subarray(start, end)), [records[i]], 'the record of a span')
    const once = start === (spans[i - 1]?.end ?? 0)
    ok(once, 'spans lie behind each other')
    equal(
      { seqNum: facts.seqNum, timestamp: facts.timestamp },
      { seqNum, timestamp },
      'the position of a span',
    )
    equal(facts.meteredBytes, meteredBytesOf(headers, body), 'the metered bytes of a span')
  }
}

/** Decodes records without the meaning of commands, which generated code does not know. */
export function recordsOf(data: Uint8Array): SequencedRecord[] {
  return decodeRecords(data).map(({ command: _, ...record }) => record)
}

/** The spans of a block, which reject what `decodeRecords` rejects. */
export const blockSpans = target({
  name: 'block-spans',
  models: fc.array(record, { maxLength: 4 }),
  encode: encodeRecords,
  decode: (input: Uint8Array) => recordSpans(input),
  refuses: rangeError,
  verify(_, input) {
    ok('value' in outcomeOf(() => recordsOf(input)), 'there are spans of what is no block')
  },
  words: TAGS,
  share: 20,
})

const cipher = fc.constantFrom('aegis-256' as const, 'aes-256-gcm' as const)

/** Sealed with a cipher that changes nothing, because the bytes around the ciphertext are fuzzed. */
function segmentOf(records: readonly SequencedRecord[], name: SealedSegment['cipher']): SealedSegment {
  const { nonceBytes, tagBytes } = SEALED_FORMATS[name]
  const ordinary = records.filter(isSealed)
  const plaintext = encodeRecords(ordinary.map((one) => ({ ...one, seqNum: 0, timestamp: 0 })))
  const sealed = {
    nonce: new Uint8Array(nonceBytes),
    ciphertext: concatBytes([plaintext, new Uint8Array(tagBytes)]),
  }
  return {
    cipher: name,
    meteredBytes: records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0),
    skeleton: encodeSkeleton(records),
    sealed: ordinary.length === 0 ? undefined : sealed,
  }
}

function opened({ cipher: name, skeleton, sealed, meteredBytes }: SealedSegment): SequencedRecord[] {
  const { tagBytes } = SEALED_FORMATS[name]
  const plaintext = sealed?.ciphertext.subarray(0, -tagBytes) ?? new Uint8Array(0)
  return joinRecords(decodeSkeleton(skeleton), plaintext, meteredBytes)
}

export const sealedBlock = target({
  name: 'sealed-block',
  models: fc.array(fc.tuple(sequence, cipher), { minLength: 1, maxLength: 3 }),
  encode: (appends) => concatBytes(appends.map(([records, name]) => encodeSegment(segmentOf(records, name)))),
  decode: (input: Uint8Array) =>
    decodeSegments(input).map((segment) => ({ segment, records: opened(segment) })),
  refuses: rangeError,
  verify(segments, input) {
    const encoded = segments.map(({ segment }) => encodeSegment(segment))
    equal(concatBytes([new Uint8Array(0), ...encoded]), input, 'the segments, written again')
    for (const { segment, records } of segments) {
      const metered = records.reduce((sum, { headers, body }) => sum + meteredBytesOf(headers, body), 0)
      equal(metered, segment.meteredBytes, 'the metered bytes of a segment')
    }
  },
  words: [...TAGS, Uint8Array.of(7), Uint8Array.of(7, 1), Uint8Array.of(7, 2)],
  share: 25,
})
