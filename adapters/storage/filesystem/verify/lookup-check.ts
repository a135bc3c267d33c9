import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, ByteWriter } from '../files/bytes.ts'
import { CheckpointIndex, readTrailer, type Trailer } from '../state/checkpoint-index.ts'
import { IdHashes } from '../state/id-hashes.ts'
import { documentPage, keyBytes } from '../state/stored-documents.ts'
import { logPage, readHashes, readLogKey } from '../state/stored-logs.ts'
import { EMPTY_BUCKET, itemAt, itemsIn, type PagePlace } from '../state/stored-pages.ts'

/** Checks that what an opening uses to find documents and logs leads to all of them. */
export class LookupCheck {
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
    const expected = this.#hashes.bucket(buckets.count)
    const entries = readHashes(payload)
    const isSame = ({ hash, number }: (typeof entries)[number], i: number) =>
      hash === expected[i]?.hash && number === expected[i]?.number
    this.#areHashesWrong ||= entries.length !== expected.length || !entries.every(isSame)
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
