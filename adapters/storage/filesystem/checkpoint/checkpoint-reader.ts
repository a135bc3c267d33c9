import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader } from '../files/bytes.ts'
import { corrupt } from '../files/errors.ts'
import type { SequentialReader } from '../files/sequential-reader.ts'
import { readSegment, readUse } from '../state/field-codec.ts'
import { State } from '../state/state.ts'
import { CHECKPOINT_FRAME_BYTES_MAX } from './checkpoint-writer.ts'

/** Reads the state from a checkpoint. The reader must keep its windows. */
export async function readCheckpoint(reader: SequentialReader): Promise<State> {
  const { salt } = await reader.header()
  const content = new CheckpointContent()
  for (;;) {
    const { offset } = reader
    const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
    if (payload === undefined) throw corrupt(reader.name, offset, 'the last frame is missing')
    try {
      if (content.add(payload)) return content.state
    } catch (error) {
      throw corrupt(reader.name, offset, (error as Error).message)
    }
  }
}

/** Collects the content of a checkpoint frame by frame. Keeps the bytes of documents and logs. */
export class CheckpointContent {
  readonly state = new State()

  /** Adds a frame. Returns whether it was the last one. Throws `RangeError` if it is malformed. */
  add(payload: Buffer): boolean {
    const { state } = this
    const fields = new ByteReader(payload)
    const letter = String.fromCharCode(fields.byte())
    switch (letter) {
      case 'S':
        while (fields.left > 0) state.addSegment(readSegment(fields)).restore(readUse(fields))
        return false
      case 'D': {
        const collection = fields.string() as Collection
        state.catalog.addStored(collection, fields.raw(fields.left))
        return false
      }
      case 'L':
        state.logs.addStored(fields.raw(fields.left))
        return false
      case 'E':
        readEnd(fields, state)
        return true
      default:
        throw new RangeError(`unknown kind of frame: ${letter}`)
    }
  }
}

/** Compares the counts with the items found. */
function readEnd(fields: ByteReader, state: State): void {
  state.nextLog = fields.varint()
  state.nextVersion = fields.varint()
  const counts = [fields.varint(), fields.varint(), fields.varint()]
  const found = [state.segments.size, state.catalog.storedSize, state.logs.storedSize]
  if (found.some((count, i) => count !== counts[i])) {
    throw new RangeError(
      `it has ${found.join(', ')} segments, documents and logs; expected ${counts.join(', ')}`,
    )
  }
}
