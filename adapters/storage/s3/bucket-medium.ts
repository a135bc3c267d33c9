import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type Medium, type MediumFile, MissingFile, type NewFile } from '../media/medium.ts'
import {
  CHAIN,
  decodePieceHeader,
  encodePiece,
  PIECE_HEADER_BYTES,
  type PieceHeader,
  pieceIndex,
  pieceKey,
} from './piece.ts'
import type { RangeCache } from './range-cache.ts'
import type { S3Bucket } from './s3-bucket.ts'

/** How long an opening tries to add its piece before another writer adds one, in milliseconds. */
const FENCE_MS_MAX = 60_000
/** How long a piece of unknown outcome is looked for and stored again, in milliseconds. */
const APPEND_MS_MAX = 60_000
const BACKOFF_MS = { first: 50, max: 5_000 }
/** How many pieces are read at once. */
const PARALLEL_READS = 16
/** The numbers of segments that an opening may use, so that they differ from those of other openings. */
const SEGMENTS_OF_EPOCH = 100_000

/** A piece of a journal. */
interface Piece {
  readonly index: number
  /** Where its data begin in the journal. */
  readonly position: number
  readonly bytes: number
}

/**
 * Keeps the files of a log as objects of a bucket. An opening fences earlier writers: it adds a piece to the
 * chain, and the bucket then refuses the next piece of an earlier writer. A file is removed only
 * after a piece of this writer has followed the checkpoint that no longer needs it; so a writer that was
 * fenced meanwhile removes nothing that its successor uses (docs/storage-format.md "In a bucket").
 */
export class BucketMedium implements Medium {
  readonly #bucket: S3Bucket
  readonly #cache: RangeCache
  readonly #epoch: number
  /** The pieces with data of each journal, in their order. */
  readonly #journals: Map<number, Piece[]>
  /** The lengths of segments and confirmed checkpoints. */
  readonly #files = new Map<string, number>()
  /** A roll adds pieces between those of the groups. */
  readonly #adding = new SerialQueue()
  #nextIndex: number
  /** Why nothing more can be written. */
  #failure: StorageFailure | undefined

  private constructor(
    bucket: S3Bucket,
    cache: RangeCache,
    epoch: number,
    nextIndex: number,
    journals: Map<number, Piece[]>,
  ) {
    this.#bucket = bucket
    this.#cache = cache
    this.#epoch = epoch
    this.#nextIndex = nextIndex
    this.#journals = journals
  }

  /** Fences earlier writers, then reads what is there. */
  static async open(bucket: S3Bucket, cache: RangeCache): Promise<BucketMedium> {
    const startedAt = performance.now()
    let last = await lastIndex(bucket)
    for (;;) {
      const before = last === 0 ? 0 : (await headerOf(bucket, last))?.epoch
      const fence = { epoch: (before ?? 0) + 1, journal: 0, checkpoint: 0, nonce: newNonce() }
      // One that was removed meanwhile is far behind the end of the chain.
      if (before === undefined) last = await lastIndex(bucket)
      else if (await created(bucket, last + 1, fence, new Uint8Array())) {
        const end = await lastIndex(bucket)
        if (end === last + 1) {
          const { journals, checkpoints } = await readChain(bucket)
          const medium = new BucketMedium(bucket, cache, fence.epoch, end + 1, journals)
          await medium.#readFiles(checkpoints)
          return medium
        }
        // Behind the end of the chain, where a removed piece has left its number free, or another opening
        // followed. Removing the piece would free its number for a writer that the other opening has fenced.
        last = end
      }
      // A writer that adds pieces meanwhile is followed, piece by piece.
      else last++
      if (performance.now() - startedAt > FENCE_MS_MAX) {
        throw new StorageFailure('blocked', 'another process writes to the bucket', { nothingWritten: true })
      }
    }
  }

  /** The numbers of new segments begin here. */
  get firstSegment(): number {
    return this.#epoch * SEGMENTS_OF_EPOCH
  }

  async list(): Promise<readonly MediumFile[]> {
    const journals = [...this.#journals].map(([number, pieces]) => {
      const { position, bytes } = pieces.at(-1)!
      return { name: nameOf('journal', number), bytes: position + bytes }
    })
    return [...journals, ...[...this.#files].map(([name, bytes]) => ({ name, bytes }))]
  }

  async read(name: string, position: number, length: number): Promise<Buffer> {
    const { kind, number } = parsed(name)
    if (kind === 'journal') return this.#readJournal(name, this.#journals.get(number), position, length)
    const bytes = this.#files.get(name)
    if (bytes === undefined) throw new MissingFile(name)
    return this.#cache.read(name, bytes, position, length, async (start, count) => {
      const found = await this.#bucket.get(name, start, count)
      if (found === undefined) throw new MissingFile(name)
      return found
    })
  }

  async append(name: string, position: number, piece: Uint8Array): Promise<void> {
    const { number: journal } = parsed(name)
    const pieces = this.#journals.get(journal) ?? []
    const index = await this.#add({ journal, checkpoint: 0 }, piece)
    pieces.push({ index, position, bytes: piece.length })
    this.#journals.set(journal, pieces)
  }

  /** Pieces are stored completely or not at all, so there is nothing to remove. */
  async resume(): Promise<void> {}

  async create(name: string): Promise<NewFile> {
    const { kind, number } = parsed(name)
    const upload = this.#bucket.upload(name)
    let bytes = 0
    return {
      write: async (part) => {
        bytes += part.length
        await upload.write(part)
      },
      finish: async () => {
        await upload.finish()
        if (kind === 'checkpoint') await this.#add({ journal: 0, checkpoint: number }, new Uint8Array())
        this.#files.set(name, bytes)
      },
      abandon: () => upload.abandon(),
    }
  }

  /**
   * Pieces without data stay: the last piece of the chain, and those that fence writers, are never removed.
   */
  async remove(name: string): Promise<void> {
    const { kind, number } = parsed(name)
    this.assertInPlace()
    if (kind === 'journal') {
      const pieces = this.#journals.get(number) ?? []
      await eachOf(pieces, ({ index }) => this.#bucket.remove(pieceKey(index)))
      this.#journals.delete(number)
    } else {
      await this.#bucket.remove(name)
      this.#files.delete(name)
    }
  }

  assertInPlace(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Ends all writing: another process has taken over. */
  fail(failure: StorageFailure): void {
    this.#failure ??= failure
  }

  async close(): Promise<void> {}

  /** Adds a piece to the chain. Resolves to its number. */
  #add(header: Pick<PieceHeader, 'journal' | 'checkpoint'>, data: Uint8Array): Promise<number> {
    return this.#adding.run(() => this.#addNext(header, data))
  }

  async #addNext(header: Pick<PieceHeader, 'journal' | 'checkpoint'>, data: Uint8Array): Promise<number> {
    this.assertInPlace()
    const index = this.#nextIndex
    const own = { ...header, epoch: this.#epoch, nonce: newNonce() }
    try {
      if (!(await created(this.#bucket, index, own, data))) {
        this.fail(takenOver(true))
        throw this.#failure
      }
    } catch (error) {
      // It may have the number, or get it later.
      if (!(error as StorageFailure).nothingWritten) this.fail(error as StorageFailure)
      throw error
    }
    this.#nextIndex++
    return index
  }

  /** Lists the files, and removes checkpoints that an earlier writer could not confirm. */
  async #readFiles(confirmed: ReadonlySet<number>): Promise<void> {
    for (const { key, bytes } of await this.#bucket.list('segment-')) this.#files.set(key, bytes)
    for (const { key, bytes } of await this.#bucket.list('checkpoint-')) {
      if (confirmed.has(parsed(key).number)) this.#files.set(key, bytes)
      else await this.#bucket.remove(key)
    }
  }

  async #readJournal(
    name: string,
    pieces: readonly Piece[] | undefined,
    position: number,
    length: number,
  ): Promise<Buffer> {
    if (pieces === undefined) throw new MissingFile(name)
    const wanted = pieces.filter((piece) => piece.position < position + length && endOf(piece) > position)
    const read: Buffer[] = new Array(wanted.length)
    await eachOf(wanted, async (piece, i) => {
      const start = Math.max(position - piece.position, 0)
      const end = Math.min(position + length, endOf(piece)) - piece.position
      const key = pieceKey(piece.index)
      read[i] = await this.#cache.read(key, piece.bytes, start, end - start, async (from, count) => {
        const found = await this.#bucket.get(key, PIECE_HEADER_BYTES + from, count)
        if (found === undefined) throw new MissingFile(name)
        return found
      })
    })
    return Buffer.concat(read)
  }
}

interface Chain {
  readonly journals: Map<number, Piece[]>
  /** The numbers of the checkpoints that a piece has confirmed. */
  readonly checkpoints: ReadonlySet<number>
}

async function lastIndex(bucket: S3Bucket): Promise<number> {
  return (await bucket.list(CHAIN)).flatMap(({ key }) => pieceIndex(key) ?? []).at(-1) ?? 0
}

/**
 * Reads the headers of all pieces. A fenced writer may still remove those of journals that no longer count:
 * its checkpoint was confirmed before.
 */
async function readChain(bucket: S3Bucket): Promise<Chain> {
  const journals = new Map<number, Piece[]>()
  const checkpoints = new Set<number>()
  const objects = await bucket.list(CHAIN)
  const headers: (PieceHeader | undefined)[] = new Array(objects.length)
  await eachOf(objects, async ({ key }, i) => {
    headers[i] = await headerOf(bucket, pieceIndex(key)!)
  })
  for (const [i, header] of headers.entries()) {
    if (header === undefined) continue
    const { journal, checkpoint } = header
    if (checkpoint > 0) checkpoints.add(checkpoint)
    const { key, bytes } = objects[i]!
    if (bytes === PIECE_HEADER_BYTES) continue
    const pieces = journals.get(journal) ?? []
    const position = pieces.length === 0 ? 0 : endOf(pieces.at(-1)!)
    pieces.push({ index: pieceIndex(key)!, position, bytes: bytes - PIECE_HEADER_BYTES })
    journals.set(journal, pieces)
  }
  return { journals, checkpoints }
}

async function headerOf(bucket: S3Bucket, index: number): Promise<PieceHeader | undefined> {
  const key = pieceKey(index)
  const found = await bucket.get(key, 0, PIECE_HEADER_BYTES)
  return found && decodePieceHeader(key, found)
}

/**
 * Stores a piece if its number is free. After an attempt of unknown outcome, looks which piece has the number
 * before it tries again. Resolves to whether it is this one.
 */
async function created(
  bucket: S3Bucket,
  index: number,
  header: PieceHeader,
  data: Uint8Array,
): Promise<boolean> {
  const key = pieceKey(index)
  const piece = encodePiece(header, data)
  const startedAt = performance.now()
  for (let pause = BACKOFF_MS.first; ; pause = Math.min(2 * pause, BACKOFF_MS.max)) {
    try {
      if ((await bucket.create(key, piece)) === 'created') return true
      // An earlier attempt may have stored it.
      return (await headerOf(bucket, index))?.nonce === header.nonce
    } catch (error) {
      if (StorageFailure.is(error) && error.nothingWritten) throw error
      if (performance.now() - startedAt > APPEND_MS_MAX) {
        throw new StorageFailure('io', `${key} could not be stored: ${(error as Error).message}`, {
          nothingWritten: false,
          cause: error,
        })
      }
      await setTimeout(pause * (0.5 + Math.random() / 2))
    }
  }
}

/** The failure of a writer that another one has replaced. */
export function takenOver(nothingWritten: boolean): StorageFailure {
  return new StorageFailure('blocked', 'another process has taken over the bucket', { nothingWritten })
}

function newNonce(): bigint {
  return randomBytes(8).readBigUInt64LE()
}

function endOf({ position, bytes }: Piece): number {
  return position + bytes
}

type Kind = 'journal' | 'segment' | 'checkpoint'

function nameOf(kind: Kind, number: number): string {
  return `${kind}-${String(number).padStart(10, '0')}`
}

function parsed(name: string): { readonly kind: Kind; readonly number: number } {
  const [, kind, number] = /^(journal|segment|checkpoint)-(\d+)$/.exec(name) ?? []
  return { kind: kind as Kind, number: Number(number) }
}

/** Runs a function for all items, some at once. */
async function eachOf<Item>(
  items: readonly Item[],
  run: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  const entries = items.entries()
  const worker = async () => {
    for (const [index, item] of entries) await run(item, index)
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL_READS, items.length) }, worker))
}
