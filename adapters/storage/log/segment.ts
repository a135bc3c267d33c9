import { laterOf } from '../../../src/core/retention.ts'
import { mergeableBlocks, mergedBlock } from '../../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import type { Medium, NewFile, ReadableMedium } from '../media/medium.ts'
import { decodeChange, encodeChange } from './changes.ts'
import {
  corrupt,
  decodeOrThrowCorrupt,
  encodeHeader,
  FrameWriter,
  fileName,
  HEADER_BYTES,
  readFrame,
} from './format.ts'
import type { Place, Run } from './state.ts'

/**
 * Appends are split into blocks of at most so much data, and an index has an entry for about as much: a read
 * of one record reads and checks no more.
 */
export const BLOCK_DATA_BYTES = 32_768

/** A block with its data, as the frames of journals and segments hold it. */
export interface FoundBlock extends StoredBlock {
  /** Whether the next block is of the same block of an append, which was split. */
  readonly isContinued: boolean
}

const NO_DATA = new Uint8Array(0)

/** Writes a segment: the runs of logs, in the order of their ids. */
export class SegmentWriter {
  readonly number: number
  readonly #file: NewFile
  readonly #writer = new FrameWriter()
  /** The length of the file. */
  bytes = HEADER_BYTES

  private constructor(number: number, file: NewFile) {
    this.number = number
    this.#file = file
  }

  static async create(medium: Medium, number: number): Promise<SegmentWriter> {
    const file = await medium.create(fileName('segment', number))
    await file.write(encodeHeader({ kind: 'segment', number, firstGroup: 0, salt: 0 }))
    return new SegmentWriter(number, file)
  }

  /** Writes consecutive blocks of a log, at least one. Small ones are merged. */
  async writeRun(log: string, found: AsyncIterable<FoundBlock>): Promise<Run> {
    const offset = this.bytes
    const places: Place[] = []
    const written: StoredBlock[] = []
    let pending: FoundBlock[] = []
    let pendingBytes = 0
    const flush = async () => {
      for (const group of mergedGroups(pending, places.at(-1)?.isContinued)) {
        const block = mergedBlock(group, () => NO_DATA)
        const { isContinued } = group.at(-1)!
        const change = encodeChange({ kind: 'block', log, block, isContinued })
        const data = group.map((piece) => piece.data)
        this.#writer.add([change], data)
        written.push({ ...block, data: NO_DATA })
      }
      const { endSeqNum, lastTimestamp, isContinued } = pending.at(-1)!
      places.push({ offset: this.bytes, bytes: this.#writer.length, endSeqNum, lastTimestamp, isContinued })
      await this.#write()
      pending = []
      pendingBytes = 0
    }
    for await (const block of found) {
      if (pending.length > 0 && pendingBytes + block.data.length > BLOCK_DATA_BYTES) await flush()
      pending.push(block)
      pendingBytes += block.data.length
    }
    await flush()
    const bytes = this.bytes - offset
    const { endSeqNum, lastTimestamp } = places.at(-1)!
    const { firstSeqNum, endSeqNum: firstEnd, expiresAt } = written[0]!
    return {
      segment: this.number,
      offset,
      bytes,
      indexBytes: places.length > 1 ? await this.#writeIndex(log, places) : 0,
      endSeqNum,
      lastTimestamp,
      isContinued: false,
      blocks: written.length,
      meteredBytes: written.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
      first: { firstSeqNum, endSeqNum: firstEnd, expiresAt },
      lastExpiry: written.map((block) => block.expiresAt).reduce(laterOf),
    }
  }

  finish(): Promise<void> {
    return this.#file.finish()
  }

  abandon(): Promise<void> {
    return this.#file.abandon()
  }

  #writeIndex(log: string, places: readonly Place[]): Promise<number> {
    this.#writer.add({ log, places: places.map(encodePlace) })
    return this.#write()
  }

  async #write(): Promise<number> {
    const { bytes } = this.#writer
    this.bytes += bytes.length
    await this.#file.write(bytes)
    this.#writer.truncate(0)
    return bytes.length
  }
}

/** Blocks of an append that was split stay as they are, so that it can be put together. */
function mergedGroups(blocks: readonly FoundBlock[], isContinuation = false): readonly FoundBlock[][] {
  const isSplit = isContinuation || blocks.some(({ isContinued }) => isContinued)
  return isSplit ? blocks.map((block) => [block]) : mergeableBlocks(blocks)
}

function encodePlace({ bytes, endSeqNum, lastTimestamp, isContinued }: Place) {
  return [bytes, endSeqNum, lastTimestamp, isContinued] as const
}

interface Index {
  readonly log: string
  readonly places: readonly ReturnType<typeof encodePlace>[]
}

/** Reads where the blocks of a run are. */
export async function readIndex(medium: ReadableMedium, log: string, run: Run): Promise<readonly Place[]> {
  if (run.indexBytes === 0) return [run]
  const name = fileName('segment', run.segment)
  const end = run.offset + run.bytes
  const found = await medium.read(name, end, run.indexBytes)
  return decodeOrThrowCorrupt(name, end, () => {
    const index = readFrame(found, 0).payload as Index
    let offset = run.offset
    const places = index.places.map(([bytes, endSeqNum, lastTimestamp, isContinued]): Place => {
      const place = { offset, bytes, endSeqNum, lastTimestamp, isContinued }
      offset += bytes
      return place
    })
    if (index.log !== log || offset !== end) throw new RangeError('the index is not that of the run')
    return places
  })
}

/** Decodes the blocks at a place. Their data are views. Fails as `corrupt` if they are damaged. */
export function blocksAt(
  name: string,
  place: Place,
  bytes: Buffer,
  bytesOffset: number,
  log: string,
  salt = 0,
): FoundBlock[] {
  const blocks: FoundBlock[] = []
  const end = place.offset + place.bytes
  for (let offset = place.offset; offset < end; ) {
    decodeOrThrowCorrupt(name, offset, () => {
      const frame = readFrame(bytes, offset - bytesOffset, salt)
      const change = decodeChange((frame.payload as unknown[])[0])
      if (change.kind !== 'block' || change.log !== log) throw new RangeError('a block of another log')
      // Not a `Buffer`, which no other storage returns.
      const data = new Uint8Array(frame.data.buffer, frame.data.byteOffset, frame.data.length)
      blocks.push({ ...change.block, data, isContinued: change.isContinued })
      offset = frame.end + bytesOffset
    })
  }
  const isExpected = blocks.at(-1)?.endSeqNum === place.endSeqNum
  if (!isExpected) throw corrupt(name, place.offset, 'other blocks are expected')
  return blocks
}

/** Reads the blocks of a run that are not freed, as far as they are asked for. */
export async function* blocksOf(
  medium: ReadableMedium,
  log: string,
  run: Run,
  freedBelow: number,
): AsyncGenerator<FoundBlock> {
  const name = fileName('segment', run.segment)
  for (const place of await readIndex(medium, log, run)) {
    if (place.endSeqNum <= freedBelow) continue
    const bytes = await medium.read(name, place.offset, place.bytes)
    for (const block of blocksAt(name, place, bytes, place.offset, log)) {
      if (block.endSeqNum > freedBelow) yield block
    }
  }
}

/** Throws a `corrupt` failure unless a segment has its length. */
export function assertLength(number: number, expected: number, actual: number | undefined): void {
  const name = fileName('segment', number)
  if (actual === undefined) throw corrupt(name, 0, 'the file is missing')
  if (actual !== expected) throw corrupt(name, Math.min(actual, expected), `${expected} bytes are expected`)
}
