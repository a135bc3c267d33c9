import type { ProducerState } from '../../../../src/core/write-state.ts'
import type { WriteStateChange } from '../../../../src/storage/write-state-change.ts'
import type { ByteReader, ByteWriter } from '../files/bytes.ts'
import { readList } from './field-codec.ts'

/** Changes of what decides about later appends (docs/storage-format.md). Persisted: keep stable. */

const FLAG_CLOSED = 1
const FLAG_STREAM_SEQ = 2

export function writeWriteStateChange(writer: ByteWriter, change: WriteStateChange): void {
  const { closed, streamSeq, producers, dropped } = change
  writer.byte((closed ? FLAG_CLOSED : 0) | (streamSeq === undefined ? 0 : FLAG_STREAM_SEQ))
  if (streamSeq !== undefined) writer.string(streamSeq)
  writer.varint(producers.length)
  for (const { id, epoch, seq, appendedAt, start, end } of producers) {
    writer.string(id)
    writer.varint(epoch)
    writer.varint(seq)
    writer.varint(appendedAt)
    writer.varint(start.seqNum)
    writer.varint(start.timestamp)
    writer.varint(end.seqNum - start.seqNum)
    writer.varint(end.timestamp - start.timestamp)
  }
  writer.varint(dropped.length)
  for (const id of dropped) writer.string(id)
}

export function readWriteStateChange(reader: ByteReader): WriteStateChange {
  const flags = reader.byte()
  if (flags > (FLAG_CLOSED | FLAG_STREAM_SEQ)) throw new RangeError(`unknown flags: ${flags}`)
  return {
    closed: flags & FLAG_CLOSED ? true : undefined,
    streamSeq: flags & FLAG_STREAM_SEQ ? reader.string() : undefined,
    producers: readList(reader, () => readProducer(reader)),
    dropped: readList(reader, () => reader.string()),
  }
}

function readProducer(reader: ByteReader): ProducerState {
  const id = reader.string()
  const [epoch, seq, appendedAt] = [reader.varint(), reader.varint(), reader.varint()]
  const start = { seqNum: reader.varint(), timestamp: reader.varint() }
  const seqNum = reader.varintAfter(start.seqNum)
  const timestamp = reader.varintAfter(start.timestamp)
  return { id, epoch, seq, appendedAt, start, end: { seqNum, timestamp } }
}
