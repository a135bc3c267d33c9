import type { StoredBlock } from '../../../src/storage/contract.ts'
import { ByteReader } from './bytes.ts'
import { readChanges } from './change-codec.ts'
import { framePayload } from './frame.ts'

/** What a frame of a journal appended. */
export interface AppendFrame {
  /** Number of the log. */
  readonly log: number
  /** Its data is a view. */
  readonly block: StoredBlock
}

/** Throws `RangeError` when the frame is none of an append, or not whole. */
export function decodeAppendFrame(frame: Buffer, salt: number): AppendFrame {
  const payload = framePayload(frame, 0, salt)
  const [change] = payload === undefined ? [] : readChanges(new ByteReader(payload))
  if (change?.kind !== 'append') throw new RangeError('a block is not what was written')
  const { buffer, byteOffset, length } = change.data
  return { log: change.log, block: { ...change.block, data: new Uint8Array(buffer, byteOffset, length) } }
}
