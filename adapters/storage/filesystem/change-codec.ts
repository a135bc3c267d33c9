import type { Collection } from '../../../src/storage/contract.ts'
import type { ByteReader, ByteWriter } from './bytes.ts'
import type { Change } from './changes.ts'
import {
  readBlock,
  readHead,
  readList,
  readRanges,
  readRun,
  readSegment,
  readStart,
  writeBlock,
  writeHead,
  writeRanges,
  writeRun,
  writeSegment,
  writeStart,
} from './field-codec.ts'

/** Persisted: keep stable. */
const KINDS = {
  append: 1,
  put: 2,
  delete: 3,
  'create-log': 4,
  'set-epoch': 5,
  'delete-log': 6,
  free: 7,
  merge: 8,
  closed: 9,
} as const satisfies Record<Change['kind'], number>

export function writeChange(writer: ByteWriter, change: Change): void {
  writer.byte(KINDS[change.kind])
  switch (change.kind) {
    case 'append':
      writer.varint(change.log)
      writeBlock(writer, change.block)
      writeHead(writer, change.head)
      writer.raw(change.data)
      return
    case 'put':
      writer.string(change.collection)
      writer.string(change.key)
      writer.varint(change.version)
      writer.string(change.text)
      return
    case 'delete':
      writer.string(change.collection)
      writer.string(change.key)
      return
    case 'create-log':
      writer.varint(change.log)
      writer.string(change.id)
      writer.varint(change.epoch)
      writer.varint(change.createdAt)
      writeStart(writer, change.start)
      return
    case 'set-epoch':
      writer.varint(change.log)
      writer.varint(change.epoch)
      return
    case 'delete-log':
      writer.varint(change.log)
      return
    case 'free':
      writer.varint(change.log)
      writer.varint(change.ranges.length)
      for (const { from, to, blocks, meteredBytes, bytes } of change.ranges) {
        for (const number of [from, to, blocks, meteredBytes, bytes]) writer.varint(number)
      }
      return
    case 'merge':
      writeSegment(writer, change.segment)
      writer.varint(change.replaced.length)
      for (const number of change.replaced) writer.varint(number)
      writer.varint(change.runs.length)
      for (const { log, run, leftOut } of change.runs) {
        writer.varint(log)
        writeRun(writer, run)
        writeRanges(writer, leftOut)
      }
      return
    case 'closed':
  }
}

/** Whether it is the frame of an orderly end. */
export function isClosingFrame(payload: Uint8Array): boolean {
  return payload.length === 1 && payload[0] === KINDS.closed
}

/** The changes of a frame. The data of an append is a view. Throws `RangeError` when it holds anything else. */
export function readChanges(reader: ByteReader): Change[] {
  const changes: Change[] = []
  while (reader.left > 0) changes.push(readChange(reader))
  return changes
}

function readChange(reader: ByteReader): Change {
  const kind = reader.byte()
  switch (kind) {
    case KINDS.append:
      return {
        kind: 'append',
        log: reader.varint(),
        block: readBlock(reader),
        head: readHead(reader),
        data: reader.raw(reader.left),
      }
    case KINDS.put:
      return {
        kind: 'put',
        collection: reader.string() as Collection,
        key: reader.string(),
        version: reader.varint(),
        text: reader.string(),
      }
    case KINDS.delete:
      return { kind: 'delete', collection: reader.string() as Collection, key: reader.string() }
    case KINDS['create-log']:
      return {
        kind: 'create-log',
        log: reader.varint(),
        id: reader.string(),
        epoch: reader.varint(),
        createdAt: reader.varint(),
        start: readStart(reader),
      }
    case KINDS['set-epoch']:
      return { kind: 'set-epoch', log: reader.varint(), epoch: reader.varint() }
    case KINDS['delete-log']:
      return { kind: 'delete-log', log: reader.varint() }
    case KINDS.free: {
      const log = reader.varint()
      const ranges = readList(reader, () => ({
        from: reader.varint(),
        to: reader.varint(),
        blocks: reader.varint(),
        meteredBytes: reader.varint(),
        bytes: reader.varint(),
      }))
      return { kind: 'free', log, ranges }
    }
    case KINDS.merge:
      return {
        kind: 'merge',
        segment: readSegment(reader),
        replaced: readList(reader, () => reader.varint()),
        runs: readList(reader, () => ({
          log: reader.varint(),
          run: readRun(reader),
          leftOut: readRanges(reader),
        })),
      }
    case KINDS.closed:
      return { kind: 'closed' }
    default:
      throw new RangeError(`a change of unknown kind ${kind}`)
  }
}
