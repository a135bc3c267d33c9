import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { type Medium, type MediumFile, MissingFile, type NewFile } from '../media/medium.ts'
import {
  CHAIN,
  decodePieceHeader,
  digitsOf,
  encodePiece,
  newPieceHeader,
  PIECE_HEADER_BYTES,
  type PieceHeader,
  pieceIndex,
  pieceKey,
} from './piece.ts'
import type { RangeCache } from './range-cache.ts'
import { backoff, CALL_MS_MAX, type S3Bucket } from './s3-bucket.ts'

/** How long an opening tries to add its piece before another writer adds one, in milliseconds. */
const FENCE_MS_MAX = 60_000
/** How many pieces are read at once. */
const PARALLEL_READS = 16
/** The keys of checkpoints are not longer. */
const KEY_BYTES_MAX = 64

/** A piece of a journal. */
interface Piece {
  readonly index: number
  readonly nonce: bigint
  /** Where its data begin in the journal. */
  readonly position: number
  readonly bytes: number
}

/** A segment or a confirmed checkpoint. */
interface StoredFile {
  readonly key: string
  readonly bytes: number
  /** The number of the piece that confirms a checkpoint. */
  readonly confirmedBy?: number | undefined
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
  /** The number of the piece by which this opening has fenced earlier writers: no other one has it. */
  readonly #epoch: number
  /** The pieces of each journal, in their order. */
  readonly #journals = new Map<number, Piece[]>()
  readonly #files = new Map<string, StoredFile>()
  /** A roll adds pieces between those of the groups. */
  readonly #adding = new SerialQueue()
  #nextIndex: number
  /** How many whole files were begun. */
  #begun = 0
  /** Why nothing more can be written. */
  #failure: StorageFailure | undefined

  private constructor(bucket: S3Bucket, cache: RangeCache, epoch: number) {
    this.#bucket = bucket
    this.#cache = cache
    this.#epoch = epoch
    this.#nextIndex = epoch + 1
  }

  /** Fences earlier writers, then reads what is there. */
  static async open(bucket: S3Bucket, cache: RangeCache): Promise<BucketMedium> {
    const medium = new BucketMedium(bucket, cache, await addFence(bucket))
    await medium.#load()
    return medium
  }

  async list(): Promise<readonly MediumFile[]> {
    const journals = [...this.#journals].map(([number, pieces]) => {
      return { name: nameOf('journal', number), bytes: endOf(pieces.at(-1)!) }
    })
    return [...journals, ...[...this.#files].map(([name, { bytes }]) => ({ name, bytes }))]
  }

  async read(name: string, position: number, length: number): Promise<Buffer> {
    const { kind, number } = parsed(name)
    if (kind === 'journal') return this.#readJournal(name, this.#journals.get(number), position, length)
    const file = this.#files.get(name)
    if (file === undefined) throw new MissingFile(name)
    return this.#readObject(name, { ...file, id: file.key }, 0, position, length)
  }

  async append(name: string, position: number, data: Uint8Array): Promise<void> {
    const { number: journal } = parsed(name)
    const pieces = this.#journals.get(journal) ?? []
    const header = newPieceHeader(journal)
    const index = await this.#add(header, data)
    pieces.push({ index, nonce: header.nonce, position, bytes: data.length })
    this.#journals.set(journal, pieces)
  }

  /** Pieces are stored completely or not at all, so there is nothing to remove. */
  async resume(): Promise<void> {}

  async create(name: string): Promise<NewFile> {
    // No two objects have the same key, so that a late request replaces nothing. The random part differs also
    // from that of a copy of the bucket, with which processes may share a cache.
    const number = `${digitsOf(this.#epoch)}-${digitsOf(this.#begun++)}`
    const key = `${name}.${number}-${randomBytes(8).toString('hex')}`
    const upload = this.#bucket.upload(key)
    let bytes = 0
    return {
      write: async (part) => {
        bytes += part.length
        await upload.write(part)
      },
      finish: async () => {
        await upload.finish()
        const isCheckpoint = parsed(name).kind === 'checkpoint'
        const confirmedBy = isCheckpoint ? await this.#add(newPieceHeader(0), Buffer.from(key)) : undefined
        this.#files.set(name, { key, bytes, confirmedBy })
      },
      abandon: () => upload.abandon(),
    }
  }

  /**
   * Pieces that fence writers are never removed: a writer that still runs would find the number free.
   */
  async remove(name: string): Promise<void> {
    const { kind, number } = parsed(name)
    this.assertInPlace()
    if (kind === 'journal') {
      const pieces = this.#journals.get(number) ?? []
      await eachOf(pieces, ({ index }) => this.#bucket.remove(pieceKey(index)))
      this.#journals.delete(number)
      return
    }
    const file = this.#files.get(name)
    if (file === undefined) return
    await this.#bucket.remove(file.key)
    if (file.confirmedBy !== undefined) await this.#bucket.remove(pieceKey(file.confirmedBy))
    this.#files.delete(name)
  }

  assertInPlace(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Rejects if another opening has fenced this one. Then nothing more is written. */
  assertWriter(): Promise<void> {
    return this.#adding.run(async () => {
      this.assertInPlace()
      if ((await this.#bucket.get(pieceKey(this.#nextIndex), 0, 1)) === undefined) return
      this.#failure = takenOver(true)
      throw this.#failure
    })
  }

  async close(): Promise<void> {}

  /** Adds a piece to the chain. Resolves to its number. */
  #add(header: PieceHeader, data: Uint8Array): Promise<number> {
    return this.#adding.run(async () => {
      this.assertInPlace()
      const index = this.#nextIndex
      try {
        const outcome = await addPiece(this.#bucket, index, header, data)
        if (outcome !== 'added') {
          this.#failure = takenOver(true)
          throw takenOver(outcome === 'refused')
        }
      } catch (error) {
        // It may have the number, or get it later.
        if (!(error as StorageFailure).nothingWritten) this.#failure ??= error as StorageFailure
        throw error
      }
      this.#nextIndex++
      return index
    })
  }

  /**
   * Reads which files there are, and removes what crashed writers have left. What later writers have added is
   * neither read nor removed.
   */
  async #load(): Promise<void> {
    const confirmations = await this.#readChain()
    const unused: string[] = []
    for (const { key, bytes } of await this.#listFiles()) {
      const [name] = key.split('.') as [string]
      const confirmedBy = confirmations.get(key)
      if (parsed(name).kind === 'checkpoint' && confirmedBy === undefined) unused.push(key)
      else {
        // Of two segments with one number, no checkpoint counts that needs that of the earlier writer.
        const earlier = this.#files.get(name)
        if (earlier !== undefined) unused.push(earlier.key)
        this.#files.set(name, { key, bytes, confirmedBy })
        confirmations.delete(key)
      }
    }
    for (const index of confirmations.values()) unused.push(pieceKey(index))
    const uploads = (await this.#bucket.uploads()).filter(({ key }) => this.#isKnown(key))
    // Otherwise a later writer may have removed what was not found.
    await this.assertWriter()
    await eachOf(unused, (key) => this.#bucket.remove(key))
    await eachOf(uploads, ({ key, uploadId }) => this.#bucket.abort(key, uploadId))
  }

  /** Reads the headers of the pieces. Resolves to the numbers of those that confirm checkpoints, by key. */
  async #readChain(): Promise<Map<string, number>> {
    const objects = (await this.#bucket.list(CHAIN)).filter(({ bytes }) => bytes > PIECE_HEADER_BYTES)
    const heads: (Buffer | undefined)[] = new Array(objects.length)
    await eachOf(objects, async ({ key }, i) => {
      heads[i] = await this.#bucket.get(key, 0, PIECE_HEADER_BYTES + KEY_BYTES_MAX)
    })
    const confirmations = new Map<string, number>()
    for (const [i, { key, bytes }] of objects.entries()) {
      const [index, head] = [pieceIndex(key), heads[i]]
      // The writer before may still remove pieces of journals that no longer count.
      if (index === undefined || head === undefined || index > this.#epoch) continue
      const { journal, nonce } = decodePieceHeader(key, head)
      if (journal === 0) confirmations.set(head.toString('latin1', PIECE_HEADER_BYTES), index)
      else {
        const pieces = this.#journals.get(journal) ?? []
        const position = pieces.length === 0 ? 0 : endOf(pieces.at(-1)!)
        pieces.push({ index, nonce, position, bytes: bytes - PIECE_HEADER_BYTES })
        this.#journals.set(journal, pieces)
      }
    }
    return confirmations
  }

  async #listFiles() {
    const lists = [await this.#bucket.list('segment-'), await this.#bucket.list('checkpoint-')]
    return lists.flat().filter(({ key }) => this.#isKnown(key))
  }

  /** Whether a key is that of a whole file of this writer or an earlier one. */
  #isKnown(key: string): boolean {
    const [, epoch] = /^(?:segment|checkpoint)-\d{10}\.(\d{12})-\d{12}-[0-9a-f]{16}$/.exec(key) ?? []
    return epoch !== undefined && Number(epoch) <= this.#epoch
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
      const object = { key, id: `${key}.${piece.nonce}`, bytes: piece.bytes }
      read[i] = await this.#readObject(name, object, PIECE_HEADER_BYTES, start, end - start)
    })
    return Buffer.concat(read)
  }

  /** Reads from an object behind its header. No other object has its `id`, in any bucket. */
  #readObject(
    name: string,
    { key, id, bytes }: { readonly key: string; readonly id: string; readonly bytes: number },
    headerBytes: number,
    position: number,
    length: number,
  ): Promise<Buffer> {
    return this.#cache.read(id, bytes, position, length, async (start, count) => {
      const found = await this.#bucket.get(key, headerBytes + start, count)
      if (found !== undefined) return found
      // A later writer may have removed it.
      await this.assertWriter()
      throw new MissingFile(name)
    })
  }
}

async function lastIndex(bucket: S3Bucket): Promise<number> {
  return (await bucket.list(CHAIN)).flatMap(({ key }) => pieceIndex(key) ?? []).at(-1) ?? 0
}

/** Adds a piece without data to the end of the chain. Resolves to its number. */
async function addFence(bucket: S3Bucket): Promise<number> {
  const startedAt = performance.now()
  let last = await lastIndex(bucket)
  while (performance.now() - startedAt < FENCE_MS_MAX) {
    // A writer that adds pieces meanwhile is followed, piece by piece.
    const index = ++last
    if ((await addPiece(bucket, index, newPieceHeader(0), new Uint8Array())) !== 'added') continue
    last = await lastIndex(bucket)
    if (last === index) return index
    // Behind the end of the chain, where a removed piece has left its number free, or another opening
    // followed. Removing the piece would free its number for a writer that the other opening has fenced.
  }
  throw new StorageFailure('blocked', 'another process writes to the bucket', { nothingWritten: true })
}

/**
 * Stores a piece if its number is free. Resolves to `refused` if another piece has it, and to `unknown` if
 * that one may have got it after this one was stored and removed.
 */
async function addPiece(
  bucket: S3Bucket,
  index: number,
  header: PieceHeader,
  data: Uint8Array,
): Promise<'added' | 'refused' | 'unknown'> {
  const key = pieceKey(index)
  const piece = encodePiece(header, data)
  const startedAt = performance.now()
  for (let attempt = 1, isUnknown = false; ; attempt++) {
    try {
      if ((await bucket.create(key, piece)) === 'created') return 'added'
      // An opening takes the next number at once: it must follow a writer faster than that adds pieces.
      if (data.length === 0) return 'refused'
      const other = isUnknown ? 'unknown' : 'refused'
      // It may be this piece, also at the first attempt: a proxy or the bucket may have repeated the request.
      isUnknown = true
      const found = await bucket.get(key, 0, PIECE_HEADER_BYTES)
      if (found === undefined) continue
      return decodePieceHeader(key, found).nonce === header.nonce ? 'added' : other
    } catch (error) {
      if (!isUnknown && StorageFailure.is(error) && error.nothingWritten) throw error
      isUnknown = true
      if (performance.now() - startedAt > CALL_MS_MAX) {
        throw new StorageFailure('io', `${key} could not be stored: ${(error as Error).message}`, {
          nothingWritten: false,
          cause: error,
        })
      }
      await setTimeout(backoff(attempt))
    }
  }
}

/** The failure of a writer that another one has replaced. */
function takenOver(nothingWritten: boolean): StorageFailure {
  return new StorageFailure('blocked', 'another process has taken over the bucket', { nothingWritten })
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
