import type { Collection } from '../../../../src/storage/contract.ts'
import { ByteReader, type ByteWriter } from '../files/bytes.ts'
import { DocumentPlaces } from './stored-documents.ts'
import { LogPlaces } from './stored-logs.ts'
import type { PagePlace } from './stored-pages.ts'

/** The places of everything in a checkpoint that is read on use. */
export class CheckpointIndex {
  readonly documents = new Map<Collection, DocumentPlaces>()
  readonly logs = new LogPlaces()

  addDocuments(collection: Collection, frame: PagePlace, firstKey: Buffer): void {
    this.#documentsOf(collection).add(frame, firstKey)
  }

  /** The payloads of the frames of the index, without their letter. */
  *entries(): Generator<(writer: ByteWriter) => void, void, undefined> {
    for (const [collection, { frames, firstKeys }] of this.documents) {
      for (let i = 0; i < frames.count; i++) {
        yield (writer) => {
          writer.byte(KINDS.documents)
          writer.string(collection)
          writePlace(writer, frames.at(i))
          const firstKey = firstKeys.at(i)
          writer.varint(firstKey.length)
          writer.raw(firstKey)
        }
      }
    }
    const { frames, facts, buckets } = this.logs
    for (let i = 0; i < frames.count; i++) {
      yield (writer) => {
        writer.byte(KINDS.logs)
        writePlace(writer, frames.at(i))
        writer.varint(facts.firsts.at(i))
        const due = facts.dues.at(i)
        writer.optional(due === Number.POSITIVE_INFINITY ? null : due)
      }
    }
    for (let i = 0; i < buckets.count; i++) {
      yield (writer) => {
        writer.byte(KINDS.bucket)
        writePlace(writer, buckets.at(i))
      }
    }
  }

  /** Adds the entries of a frame. Throws `RangeError` if they are malformed. */
  add(fields: ByteReader): void {
    while (fields.left > 0) {
      const kind = fields.byte()
      if (kind === KINDS.documents) {
        const pages = this.#documentsOf(fields.string() as Collection)
        pages.add(readPlace(fields), fields.raw(fields.varint()))
      } else if (kind === KINDS.logs) {
        this.logs.add(readPlace(fields), fields.varint(), fields.optional() ?? Number.POSITIVE_INFINITY)
      } else if (kind === KINDS.bucket) {
        this.logs.buckets.add(readPlace(fields))
      } else {
        throw new RangeError(`unknown kind of index entry: ${kind}`)
      }
    }
  }

  #documentsOf(collection: Collection): DocumentPlaces {
    let pages = this.documents.get(collection)
    if (pages === undefined) {
      pages = new DocumentPlaces()
      this.documents.set(collection, pages)
    }
    return pages
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
