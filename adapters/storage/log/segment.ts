import { laterOf } from '../../../src/core/retention.ts'
import { mergeableBlocks, mergedBlock } from '../../../src/storage/block-sizes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import { Damage, MissingFile, type ReadableMedium } from '../media/medium.ts'
import { decodeChange, encodeChange } from './changes.ts'
import { decodeOrThrowCorrupt, Fields, type FrameFile, fileName, type Row, readFrame } from './format.ts'
import type { Place, Run } from './state.ts'

/**
 * Appends are split into blocks of at most so much data, and an index has an entry for about as much: a read
 * of one record reads and checks no more.
 */
export const BLOCK_DATA_BYTES = 32_768

const NO_DATA = new Uint8Array(0)

/** Writes consecutive blocks of a log to a segment, at least one, and an index. Merges small ones. */
export async function writeRun(
  file: FrameFile,
  log: string,
  found: AsyncIterable<StoredBlock>,
): Promise<Run> {
  const offset = file.bytes
  const places: Place[] = []
  const written: StoredBlock[] = []
  let pending: StoredBlock[] = []
  let pendingBytes = 0
  const flush = async () => {
    const start = file.bytes
    for (const group of mergeableBlocks(pending)) {
      const block = mergedBlock(group, () => NO_DATA)
      const change = encodeChange({ kind: 'block', log, block })
      await file.add(
        [change],
        group.map(({ data }) => data),
      )
      written.push({ ...block, data: NO_DATA })
    }
    const { endSeqNum, lastTimestamp } = pending.at(-1)!
    places.push({ offset: start, bytes: file.bytes - start, endSeqNum, lastTimestamp })
    pending = []
    pendingBytes = 0
  }
  for await (const block of found) {
    if (pending.length > 0 && pendingBytes + block.data.length > BLOCK_DATA_BYTES) await flush()
    pending.push(block)
    pendingBytes += block.data.length
  }
  await flush()
  const bytes = file.bytes - offset
  const { endSeqNum, lastTimestamp } = places.at(-1)!
  const { firstSeqNum, endSeqNum: firstEnd, expiresAt } = written[0]!
  return {
    segment: file.number,
    offset,
    bytes,
    indexBytes: places.length > 1 ? await writeIndex(file, log, places) : 0,
    endSeqNum,
    lastTimestamp,
    blocks: written.length,
    meteredBytes: written.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    first: { firstSeqNum, endSeqNum: firstEnd, expiresAt },
    lastExpiry: written.map((block) => block.expiresAt).reduce(laterOf),
  }
}

const PLACE = new Fields<Place>('offset', 'bytes', 'endSeqNum', 'lastTimestamp')

interface Index {
  readonly log: string
  readonly places: readonly Row[]
}

function writeIndex(file: FrameFile, log: string, places: readonly Place[]): Promise<number> {
  const index: Index = { log, places: places.map((place) => PLACE.encode(place)) }
  return file.add(index)
}

/** Reads where the blocks of a run are. */
export async function readIndex(medium: ReadableMedium, log: string, run: Run): Promise<readonly Place[]> {
  if (run.indexBytes === 0) return [run]
  const name = fileName('segment', run.segment)
  const end = run.offset + run.bytes
  const found = await medium.read(name, end, run.indexBytes)
  return decodeOrThrowCorrupt(name, end, () => {
    const index = readFrame(found, 0).payload as Index
    const places = index.places.map((place) => PLACE.decode(place))
    const isOfRun = index.log === log && places[0]?.offset === run.offset
    if (!isOfRun) throw new RangeError('the index is not that of the run')
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
): StoredBlock[] {
  const blocks: StoredBlock[] = []
  const end = place.offset + place.bytes
  for (let offset = place.offset; offset < end; ) {
    decodeOrThrowCorrupt(name, offset, () => {
      const frame = readFrame(bytes, offset - bytesOffset, salt)
      const change = decodeChange((frame.payload as unknown[])[0])
      if (change.kind !== 'block' || change.log !== log) throw new RangeError('a block of another log')
      // Not a `Buffer`, which no other storage returns.
      const data = new Uint8Array(frame.data.buffer, frame.data.byteOffset, frame.data.length)
      blocks.push({ ...change.block, data })
      offset = frame.end + bytesOffset
    })
  }
  const isExpected = blocks.at(-1)?.endSeqNum === place.endSeqNum
  if (!isExpected) throw new Damage(name, place.offset, 'other blocks are expected')
  return blocks
}

/** Reads the blocks of a run that are not freed, as far as they are asked for. */
export async function* blocksOf(
  medium: ReadableMedium,
  log: string,
  run: Run,
  freedBelow: number,
): AsyncGenerator<StoredBlock> {
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
  if (actual === undefined) throw new MissingFile(name)
  if (actual !== expected)
    throw new Damage(name, Math.min(actual, expected), `${expected} bytes are expected`)
}
