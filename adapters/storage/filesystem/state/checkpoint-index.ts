import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, type ByteWriter } from '../files/bytes.ts'
import type { BucketPlace, LogPageFacts } from './stored-logs.ts'
import type { PagePlace } from './stored-pages.ts'

/** A page of documents as the index describes it. */
export interface DocumentPageFacts extends PagePlace {
  readonly firstKey: Buffer
}

/** The places of everything in a checkpoint that is read on use. */
export class CheckpointIndex {
  readonly documents = new Map<Collection, DocumentPageFacts[]>()
  readonly logs: (LogPageFacts & PagePlace)[] = []
  /** The frames of the hashes, one for each bucket. */
  readonly buckets: BucketPlace[] = []

  addDocuments(collection: Collection, page: DocumentPageFacts): void {
    const pages = this.documents.get(collection)
    if (pages === undefined) this.documents.set(collection, [page])
    else pages.push(page)
  }

  /** The payloads of the frames of the index, without their letter. */
  *entries(): Generator<(writer: ByteWriter) => void, void, undefined> {
    for (const [collection, pages] of this.documents) {
      for (const { firstKey, ...place } of pages) {
        yield (writer) => {
          writer.byte(KINDS.documents)
          writer.string(collection)
          writePlace(writer, place)
          writer.varint(firstKey.length)
          writer.raw(firstKey)
        }
      }
    }
    for (const { first, due, ...place } of this.logs) {
      yield (writer) => {
        writer.byte(KINDS.logs)
        writePlace(writer, place)
        writer.varint(first)
        writer.optional(due === Number.POSITIVE_INFINITY ? null : due)
      }
    }
    for (const place of this.buckets) {
      yield (writer) => {
        writer.byte(KINDS.bucket)
        writePlace(writer, place ?? { offset: 0, bytes: 0 })
      }
    }
  }

  /** Adds the entries of a frame. Throws `RangeError` if they are malformed. */
  add(fields: ByteReader): void {
    while (fields.left > 0) {
      const kind = fields.byte()
      if (kind === KINDS.documents) {
        const collection = fields.string() as Collection
        const place = readPlace(fields)
        this.addDocuments(collection, { ...place, firstKey: fields.raw(fields.varint()) })
      } else if (kind === KINDS.logs) {
        const place = readPlace(fields)
        const first = fields.varint()
        this.logs.push({ ...place, first, due: fields.optional() ?? Number.POSITIVE_INFINITY })
      } else if (kind === KINDS.bucket) {
        const place = readPlace(fields)
        this.buckets.push(place.bytes === 0 ? undefined : place)
      } else {
        throw new RangeError(`unknown kind of index entry: ${kind}`)
      }
    }
  }
}

/** Persisted: keep stable. */
const KINDS = { documents: 1, logs: 2, bucket: 3 } as const

function writePlace(writer: ByteWriter, { offset, bytes }: PagePlace): void {
  writer.varint(offset)
  writer.varint(bytes)
}

function readPlace(fields: ByteReader): PagePlace {
  return { offset: fields.varint(), bytes: fields.varint() }
}

/** Length of the payload of the last frame. */
export const TRAILER_BYTES = 25

/** The last frame, which has a fixed length. */
export interface Trailer {
  /** The end of the frames of segments, in bytes. */
  readonly segmentsEnd: number
  /** The offset of the frame with the counts, in bytes. */
  readonly counts: number
  /** The offset of the index, in bytes. */
  readonly index: number
}

export function writeTrailer(writer: ByteWriter, { segmentsEnd, counts, index }: Trailer): void {
  for (const offset of [segmentsEnd, counts, index]) {
    writer.u32(offset % 2 ** 32)
    writer.u32(Math.floor(offset / 2 ** 32))
  }
}

/** Decodes the payload of the last frame. Throws `RangeError` if it is malformed. */
export function readTrailer(payload: Buffer): Trailer {
  const fields = new ByteReader(payload)
  if (fields.byte() !== 'T'.charCodeAt(0)) throw new RangeError('the last frame is missing')
  const offset = () => fields.u32() + 2 ** 32 * fields.u32()
  return { segmentsEnd: offset(), counts: offset(), index: offset() }
}
