import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { SerialQueue } from '../../../src/runtime/queues.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { fileName, parseFileName } from '../log/format.ts'
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
/** How many requests are made at once. */
const PARALLEL_REQUESTS = 16
/** The keys of checkpoints are not longer. */
const KEY_BYTES_MAX = 64
/** A whole file is stored in objects of about this size. */
const PART_BYTES = 16 * 1_048_576
/** A part of a whole file: key of the file, its name, its kind and its epoch. */
const PART_KEY = /^((([a-z]+)-\d{10})\.(\d{12})-\d{12}-[0-9a-f]{16})\/\d{6}$/

const NO_DATA = new Uint8Array()

/** An object with a part of a file: a piece of a journal, or a part of a whole file. */
interface Part {
  readonly key: string
  /** No other object has it, in any bucket. */
  readonly id: string
  /** How much precedes its data in the object. */
  readonly headerBytes: number
  /** The position of its data in the file. */
  readonly position: number
  readonly bytes: number
}

interface StoredFile {
  /** The beginning of the keys of its parts; undefined for a journal. */
  readonly key?: string
  readonly parts: Part[]
  /** The key of the piece that confirms a checkpoint. */
  readonly confirmedBy?: string | undefined
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
    return [...this.#files].map(([name, { parts }]) => ({ name, bytes: endOf(parts) }))
  }

  async read(name: string, position: number, length: number): Promise<Buffer> {
    const file = this.#files.get(name)
    if (file === undefined) throw new MissingFile(name)
    const end = position + length
    const wanted = file.parts.filter((part) => part.position < end && part.position + part.bytes > position)
    const read: Buffer[] = new Array(wanted.length)
    await eachOf(wanted, async (part, i) => {
      const start = Math.max(position - part.position, 0)
      read[i] = await this.#readPart(name, part, start, Math.min(end - part.position, part.bytes) - start)
    })
    return read.length === 1 ? read[0]! : Buffer.concat(read)
  }

  async append(name: string, position: number, data: Uint8Array): Promise<void> {
    const header = newPieceHeader(parseFileName(name)!.number)
    const index = await this.#add(header, data)
    this.#addPart(name, pieceOf(index, header, position, data.length))
  }

  /** Pieces are stored completely or not at all, so there is nothing to remove. */
  async resume(): Promise<void> {}

  /**
   * Stores the parts as they come: until a piece confirms it, a checkpoint does not count, nor does a segment
   * that no checkpoint needs. No two objects have the same key, so that a late request replaces nothing. The
   * random part differs also from that of a copy of the bucket, with which processes may share a cache.
   */
  async create(name: string): Promise<NewFile> {
    const serial = `${digitsOf(this.#epoch)}-${digitsOf(this.#begun++)}`
    const key = `${name}.${serial}-${randomBytes(8).toString('hex')}`
    let parts: Part[] = []
    let waiting: Uint8Array[] = []
    let bytes = 0
    const store = async () => {
      const data = Buffer.concat(waiting)
      const part = partOf(`${key}/${String(parts.length).padStart(6, '0')}`, endOf(parts), data.length)
      waiting = []
      bytes = 0
      parts.push(part)
      await this.#bucket.put(part.key, data)
    }
    return {
      write: async (data) => {
        waiting.push(Uint8Array.from(data))
        bytes += data.length
        if (bytes >= PART_BYTES) await store()
      },
      finish: async () => {
        if (bytes > 0) await store()
        const file = { key, parts }
        // It counts from now on, also if the response to the confirmation is lost.
        parts = []
        const isCheckpoint = name.startsWith('checkpoint')
        const confirm = async () => pieceKey(await this.#add(newPieceHeader(0), Buffer.from(key)))
        this.#files.set(name, { ...file, confirmedBy: isCheckpoint ? await confirm() : undefined })
      },
      abandon: () => this.#removeAll(parts).catch(() => {}),
    }
  }

  /**
   * Pieces that fence writers are never removed: a writer that still runs would find the number free.
   */
  async remove(name: string): Promise<void> {
    this.assertInPlace()
    const file = this.#files.get(name)
    if (file === undefined) return
    // A checkpoint counts as long as it is confirmed.
    if (file.confirmedBy !== undefined) await this.#bucket.remove(file.confirmedBy)
    await this.#removeAll(file.parts)
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

  /** Makes one attempt of each further request, because none has to succeed. */
  async close(): Promise<void> {
    this.#bucket.stopRepeating()
  }

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
    const unused: { readonly key: string }[] = []
    const objects = [await this.#bucket.list('segment-'), await this.#bucket.list('checkpoint-')].flat()
    for (const { key: partKey, bytes } of objects) {
      const [, key, name, kind, epoch] = PART_KEY.exec(partKey) ?? []
      if (key === undefined || name === undefined) throw unknownObject(partKey)
      if (Number(epoch) > this.#epoch) continue
      const confirmedBy = confirmations.get(key)
      if (kind === 'checkpoint' && confirmedBy === undefined) {
        unused.push({ key: partKey })
        continue
      }
      const earlier = this.#files.get(name)
      if (earlier?.key !== key) {
        // Of two segments with one number, no checkpoint counts that needs that of the earlier writer.
        unused.push(...(earlier?.parts ?? []))
        this.#files.set(name, { key, parts: [], confirmedBy })
      }
      const { parts } = this.#files.get(name)!
      parts.push(partOf(partKey, endOf(parts), bytes))
    }
    for (const [key, confirmation] of confirmations) {
      if (![...this.#files.values()].some((file) => file.key === key)) unused.push({ key: confirmation })
    }
    // Otherwise a later writer may have removed what was not found.
    await this.assertWriter()
    await this.#removeAll(unused)
  }

  /** Reads the headers of the pieces. Resolves to those that confirm checkpoints, by the keys of these. */
  async #readChain(): Promise<Map<string, string>> {
    const objects = (await this.#bucket.list(CHAIN)).filter(({ bytes }) => bytes > PIECE_HEADER_BYTES)
    const heads: (Buffer | undefined)[] = new Array(objects.length)
    await eachOf(objects, async ({ key }, i) => {
      heads[i] = await this.#bucket.get(key, 0, PIECE_HEADER_BYTES + KEY_BYTES_MAX)
    })
    const confirmations = new Map<string, string>()
    for (const [i, { key, bytes }] of objects.entries()) {
      const [index, head] = [pieceIndex(key), heads[i]]
      // The writer before may still remove pieces of journals that no longer count.
      if (index === undefined || head === undefined || index > this.#epoch) continue
      const header = decodePieceHeader(key, head)
      if (header.journal === 0) confirmations.set(head.toString('latin1', PIECE_HEADER_BYTES), key)
      else {
        const name = fileName('journal', header.journal)
        const position = endOf(this.#files.get(name)?.parts ?? [])
        this.#addPart(name, pieceOf(index, header, position, bytes - PIECE_HEADER_BYTES))
      }
    }
    return confirmations
  }

  #addPart(name: string, part: Part): void {
    const file = this.#files.get(name)
    if (file === undefined) this.#files.set(name, { parts: [part] })
    else file.parts.push(part)
  }

  #removeAll(objects: readonly { readonly key: string }[]): Promise<void> {
    return eachOf(objects, ({ key }) => this.#bucket.remove(key))
  }

  #readPart(name: string, part: Part, position: number, length: number): Promise<Buffer> {
    return this.#cache.read(part.id, part.bytes, position, length, async (start, count) => {
      const found = await this.#bucket.get(part.key, part.headerBytes + start, count)
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

/**
 * Adds a piece without data to the end of the chain. Resolves to its number. Rejects for a bucket that
 * ignores the condition of a write: two writers would not notice each other.
 */
async function addFence(bucket: S3Bucket): Promise<number> {
  const startedAt = performance.now()
  let last = await lastIndex(bucket)
  for (let attempt = 1; performance.now() - startedAt < FENCE_MS_MAX; ) {
    // A writer that adds pieces meanwhile is followed, piece by piece.
    const index = ++last
    if ((await addPiece(bucket, index, newPieceHeader(0), NO_DATA)) !== 'added') continue
    last = await lastIndex(bucket)
    if (last === index) {
      await assertConditional(bucket, pieceKey(index))
      return index
    }
    // Behind the end of the chain, where a removed piece has left its number free, or another opening
    // followed. Removing the piece would free its number for a writer that the other opening has fenced.
    await setTimeout(backoff(attempt++))
  }
  throw new StorageFailure('blocked', 'another process writes to the bucket', { nothingWritten: true })
}

/** Rejects unless the bucket refuses to store an object again. */
async function assertConditional(bucket: S3Bucket, key: string): Promise<void> {
  if ((await bucket.create(key, NO_DATA, true)) === 'exists') return
  const message = 'the bucket ignores `if-none-match`: a storage needs conditional writes'
  throw new StorageFailure('denied', message, { nothingWritten: true })
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
    let problem: unknown = new Error('its number is not free, and no piece has it')
    try {
      if ((await bucket.create(key, piece)) === 'created') return 'added'
      // An opening takes the next number at once: it must follow a writer faster than that adds pieces.
      if (data.length === 0) return 'refused'
      const other = isUnknown ? 'unknown' : 'refused'
      // It may be this piece, also at the first attempt: a proxy or the bucket may have repeated the request.
      isUnknown = true
      const found = await bucket.get(key, 0, PIECE_HEADER_BYTES)
      if (found !== undefined) {
        return decodePieceHeader(key, found).nonce === header.nonce ? 'added' : other
      }
    } catch (error) {
      if (!isUnknown && (error as StorageFailure).nothingWritten) throw error
      isUnknown = true
      problem = error
    }
    if (performance.now() - startedAt > CALL_MS_MAX) {
      throw new StorageFailure('io', `${key} could not be stored: ${(problem as Error).message}`, {
        nothingWritten: false,
        cause: problem,
      })
    }
    await setTimeout(backoff(attempt))
  }
}

/** The failure of a writer that another one has replaced. */
function takenOver(nothingWritten: boolean): StorageFailure {
  return new StorageFailure('blocked', 'another process has taken over the bucket', { nothingWritten })
}

/** The failure of opening a bucket of a preview, whose files were single objects. */
function unknownObject(key: string): StorageFailure {
  const message =
    `the object ${key} has a format that this version of headwater does not read: ` +
    'use another prefix, or delete what an earlier preview has left below this one'
  return new StorageFailure('blocked', message, { nothingWritten: true })
}

function pieceOf(index: number, { nonce }: PieceHeader, position: number, bytes: number): Part {
  const key = pieceKey(index)
  return { key, id: `${key}.${nonce}`, headerBytes: PIECE_HEADER_BYTES, position, bytes }
}

function partOf(key: string, position: number, bytes: number): Part {
  return { key, id: key, headerBytes: 0, position, bytes }
}

/** The length of a file. */
function endOf(parts: readonly Part[]): number {
  const last = parts.at(-1)
  return last === undefined ? 0 : last.position + last.bytes
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
  await Promise.all(Array.from({ length: Math.min(PARALLEL_REQUESTS, items.length) }, worker))
}
