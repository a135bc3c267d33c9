import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Header, SequencedRecord } from '../../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../../src/storage/block-codec.ts'
import { ReadBatchSchema } from '../../src/wire/gen/records_pb.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, timestampOf } from '../harness/records.ts'

interface Shape {
  readonly bytes: number
}

/** The block codec, which is no part of the public API, and two ways of doing its work with a library. */
host({
  'own encode': (shape: Shape) => encoding(shape, encodeRecords),
  'own decode': (shape: Shape) => decoding(shape, decodeRecords),
  'library encode': (shape: Shape) => encoding(shape, libraryEncode),
  'library decode': (shape: Shape) => decoding(shape, libraryDecode),
  'generated encode': (shape: Shape) => encoding(shape, generatedEncode),
  'generated decode': (shape: Shape) => decoding(shape, generatedDecode),
})

function encoding({ bytes }: Shape, encode: (records: readonly SequencedRecord[]) => Uint8Array): Prepared {
  const records = sampleRecords(bytes)
  return {
    turn(count) {
      let total = 0
      for (let i = 0; i < count; i++) total += encode(records).length
      if (total < count * bytes) throw new Error('encoded too little')
    },
  }
}

function decoding({ bytes }: Shape, decode: (block: Uint8Array) => readonly SequencedRecord[]): Prepared {
  const records = sampleRecords(bytes)
  const block = encodeRecords(records)
  return {
    turn(count) {
      let total = 0
      for (let i = 0; i < count; i++) total += decode(block).length
      if (total !== count * records.length) throw new Error('decoded another number of records')
    },
  }
}

function sampleRecords(bytes: number): SequencedRecord[] {
  return bodiesFrom(0, 1_000, bytes).map((body, index) => ({
    seqNum: 1_000_000 + index,
    timestamp: timestampOf(index),
    headers: [],
    body,
  }))
}

function generatedEncode(records: readonly SequencedRecord[]): Uint8Array {
  const message = create(ReadBatchSchema, {
    records: records.map(({ seqNum, timestamp, headers, body }) => ({
      seqNum: BigInt(seqNum),
      timestamp: BigInt(timestamp),
      headers: headers.map(([name, value]) => ({ name, value })),
      body,
    })),
  })
  return toBinary(ReadBatchSchema, message)
}

function generatedDecode(data: Uint8Array): SequencedRecord[] {
  return fromBinary(ReadBatchSchema, data).records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum: Number(seqNum),
    timestamp: Number(timestamp),
    headers: headers.map(({ name, value }) => [name, value] as const),
    body,
  }))
}

function libraryEncode(records: readonly SequencedRecord[]): Uint8Array {
  const writer = new BinaryWriter()
  for (const { seqNum, timestamp, headers, body } of records) {
    writer.tag(1, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).uint64(BigInt(seqNum))
    writer.tag(2, WireType.Varint).uint64(BigInt(timestamp))
    for (const [name, value] of headers) {
      writer.tag(3, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.LengthDelimited).bytes(name)
      writer.tag(2, WireType.LengthDelimited).bytes(value)
      writer.join()
    }
    writer.tag(4, WireType.LengthDelimited).bytes(body).join()
  }
  return writer.finish()
}

function libraryDecode(data: Uint8Array): SequencedRecord[] {
  const reader = new BinaryReader(data)
  const records: SequencedRecord[] = []
  while (reader.pos < reader.len) {
    reader.tag()
    const end = reader.uint32() + reader.pos
    const headers: Header[] = []
    let [seqNum, timestamp] = [0, 0]
    let body: Uint8Array = new Uint8Array(0)
    while (reader.pos < end) {
      const [field, type] = reader.tag()
      if (field === 1) seqNum = Number(reader.uint64())
      else if (field === 2) timestamp = Number(reader.uint64())
      else if (field === 3) headers.push(libraryDecodeHeader(reader))
      else if (field === 4) body = reader.bytes()
      else reader.skip(type, field)
    }
    records.push({ seqNum, timestamp, headers, body })
  }
  return records
}

function libraryDecodeHeader(reader: BinaryReader): Header {
  const end = reader.uint32() + reader.pos
  let name: Uint8Array = new Uint8Array(0)
  let value = name
  while (reader.pos < end) {
    const [field] = reader.tag()
    if (field === 1) name = reader.bytes()
    else value = reader.bytes()
  }
  return [name, value]
}
