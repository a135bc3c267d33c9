import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import { fileName } from '../files/file-header.ts'
import { FRAME_HEADER_BYTES, payloadEnd } from '../files/frame.ts'
import type { SequentialReader } from '../files/sequential-reader.ts'
import { CHECKPOINT_FRAME_BYTES_MAX, CheckpointContent } from '../state/checkpoint.ts'
import { INDEXED_VERSION } from '../state/checkpoint-file.ts'
import { CheckpointIndex, readTrailer, type Trailer } from '../state/checkpoint-index.ts'
import { IdHashes } from '../state/id-hashes.ts'
import { decodeDocument, documentPage, keyBytes } from '../state/stored-documents.ts'
import { logPage, readLog, readLogKey, writeHashes } from '../state/stored-logs.ts'
import { EMPTY_BUCKET, itemAt, itemsIn, type PagePlace } from '../state/stored-pages.ts'
import { checkHead } from './change-check.ts'
import { checkDocument } from './document-check.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'

/** Reads the checkpoint and adopts its state, or the undamaged part of it. */
export async function checkCheckpoint(scan: Scan, number: number): Promise<void> {
  await scan.readFile(fileName('checkpoint', number), (reader) => readFrames(scan, reader), true)
}

async function readFrames(scan: Scan, reader: SequentialReader): Promise<void> {
  const { findings } = scan
  let place: Place = { file: reader.name, offset: 0 }
  const content = new CheckpointContent()
  scan.state = content.state
  const { salt, version } = await reader.header()
  const lookup = version < INDEXED_VERSION ? undefined : new LookupCheck(reader.offset)
  for (let isLast = false; !isLast; ) {
    place = { file: reader.name, offset: reader.offset }
    scan.at(reader.offset)
    try {
      const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
      if (payload === undefined) throw new RangeError('the last frame is missing')
      const letter = String.fromCharCode(payload[0]!)
      // The counts do not match the undamaged part of a damaged checkpoint.
      isLast = letter === (lookup === undefined ? 'E' : 'T')
      const frame = { offset: place.offset, bytes: reader.offset - place.offset }
      if (lookup?.add(letter, payload, frame)) continue
      checkItems(scan, payload, place)
      content.add(payload)
    } catch (error) {
      const isUnread = reader.offset === place.offset
      // What it refers to may have been in the damaged frame.
      if (isUnread || !scan.isPartial) findings.failure(place, error)
      scan.isPartial = true
      if (isUnread && !(await skipFrame(reader, salt))) return
    }
  }
  if (reader.offset < reader.size) {
    findings.problem({ file: reader.name, offset: reader.offset }, 'unexpected data after the last frame')
  }
  if (scan.isPartial) return
  await checkCounters(scan, place)
  if (lookup?.isWrong) findings.problem(place, 'the index does not match the frames')
}

/** Checks documents and logs one by one. Throws `RangeError` if the frame is malformed. */
function checkItems(scan: Scan, payload: Buffer, place: Place): void {
  const fields = new ByteReader(payload)
  const letter = String.fromCharCode(fields.byte())
  if (letter === 'D') {
    const collection = fields.string() as Collection
    for (const item of itemsIn(documentPage(fields.raw(fields.left)))) {
      const { key, document } = decodeDocument(item)
      const entry = { collection, key, ...document! }
      scan.setPlace(entry, place)
      checkItem(scan, place, () => checkDocument(entry))
    }
  }
  if (letter === 'L') {
    for (const item of itemsIn(logPage(fields.raw(fields.left)))) {
      const { number, id, head } = readLog(item, scan.state.segments)
      scan.logPlaces.set(number, place)
      checkItem(scan, place, () => checkHead(head), id)
    }
  }
}

function checkItem({ findings }: Scan, place: Place, check: () => void, log?: string): void {
  try {
    check()
  } catch (error) {
    findings.failure(place, error, log)
  }
}

/** Skips a damaged frame if its length can be trusted: a complete frame must follow. */
async function skipFrame(reader: SequentialReader, salt: number): Promise<boolean> {
  const { offset } = reader
  const bytes = payloadEnd(await reader.peek(FRAME_HEADER_BYTES), 0)
  if (bytes >= reader.size - offset) return false
  reader.skip(bytes)
  const start = reader.offset
  const next = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX).catch(() => undefined)
  if (next === undefined) return false
  reader.skip(start - reader.offset)
  return true
}

/** Versions and numbers must be unique and below their counters. */
async function checkCounters({ state, findings }: Scan, place: Place): Promise<void> {
  const versions = new Set<number>()
  let documents = 0
  for await (const { version } of state.catalog.entries()) {
    documents++
    versions.add(version)
  }
  const ids = new Set<string>()
  const numbers: number[] = []
  for await (const { number, id } of state.logs.values()) {
    numbers.push(number)
    ids.add(id)
  }
  if ([...versions].some((version) => version >= state.nextVersion)) {
    findings.problem(place, 'a document has a version beyond the counter')
  }
  if (versions.size < documents) findings.problem(place, 'two documents have the same version')
  if (numbers.some((number) => number >= state.nextLog)) {
    findings.problem(place, 'a log has a number beyond the counter')
  }
  if (ids.size < numbers.length) findings.problem(place, 'two logs have the same id')
}

/** Checks that what an opening uses to find documents and logs leads to all of them. */
class LookupCheck {
  readonly #found = new CheckpointIndex()
  readonly #hashes = new IdHashes()
  readonly #index = new CheckpointIndex()
  #segmentsEnd: number
  #counts = 0
  #indexStart = 0
  #trailer: Trailer | undefined
  #areHashesWrong = false

  /** @param start Where the first frame begins. */
  constructor(start: number) {
    this.#segmentsEnd = start
  }

  /**
   * Adds a frame. Returns whether it has nothing but what is checked here. Throws `RangeError` if it is
   * malformed.
   */
  add(letter: string, payload: Buffer, place: PagePlace): boolean {
    const fields = new ByteReader(payload, 1)
    switch (letter) {
      case 'S':
        this.#segmentsEnd = place.offset + place.bytes
        return false
      case 'D': {
        const collection = fields.string() as Collection
        const page = documentPage(fields.raw(fields.left))
        this.#found.addDocuments(collection, place, keyBytes(itemAt(page, 0)))
        return false
      }
      case 'L':
        this.#addLogs(fields.raw(fields.left), place)
        return false
      case 'E':
        this.#counts = place.offset
        return false
      case 'H':
        this.#addHashes(payload, place)
        return true
      case 'I':
        this.#indexStart ||= place.offset
        this.#index.add(fields)
        return true
      case 'T':
        this.#trailer = readTrailer(payload)
        this.#indexStart ||= place.offset
        return true
      default:
        return false
    }
  }

  /** Whether something cannot be found. All frames must have been added. */
  get isWrong(): boolean {
    const { buckets } = this.#found.logs
    while (buckets.count < 2 ** this.#hashes.bucketBits) this.#addEmpty()
    const trailer = this.#trailer
    return (
      this.#areHashesWrong ||
      trailer?.segmentsEnd !== this.#segmentsEnd ||
      trailer.counts !== this.#counts ||
      trailer.index !== this.#indexStart ||
      !encoded(this.#index).equals(encoded(this.#found))
    )
  }

  #addLogs(bytes: Buffer, place: PagePlace): void {
    const page = logPage(bytes)
    let due = Number.POSITIVE_INFINITY
    for (const item of itemsIn(page)) {
      const fields = new ByteReader(item)
      const key = readLogKey(fields)
      due = Math.min(due, key.due)
      this.#hashes.add(fields.raw(fields.varint()), key.number)
    }
    const first = readLogKey(new ByteReader(itemAt(page, 0))).number
    this.#found.logs.add(place, first, due)
  }

  /** A bucket without entries has no frame. */
  #addHashes(payload: Buffer, place: PagePlace): void {
    const { buckets } = this.#found.logs
    const count = 2 ** this.#hashes.bucketBits
    while (buckets.count < count && this.#hashes.bucket(buckets.count).length === 0) this.#addEmpty()
    const expected = new ByteWriter()
    writeHashes(expected, this.#hashes.bucket(buckets.count))
    // The letter comes first.
    this.#areHashesWrong ||= !payload.subarray(1).equals(expected.bytes)
    buckets.add(place)
  }

  #addEmpty(): void {
    const { buckets } = this.#found.logs
    this.#areHashesWrong ||= this.#hashes.bucket(buckets.count).length > 0
    buckets.add(EMPTY_BUCKET)
  }
}

function encoded(index: CheckpointIndex): Buffer {
  const writer = new ByteWriter()
  for (const write of index.entries()) write(writer)
  return writer.bytes
}
