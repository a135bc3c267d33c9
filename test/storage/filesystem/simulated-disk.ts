import type { File, Files, OpenMode } from '../../../adapters/storage/media/files.ts'
import type { Prng } from '../../../src/runtime/random.ts'

const SECTOR_BYTES = 512

/** A change of content: bytes written at a position, or a new length. */
interface Write {
  readonly position: number
  readonly bytes: Uint8Array
}
type ContentChange = Write | { readonly length: number }

interface FileChanges {
  readonly synced: ContentChange[]
  pending: ContentChange[]
}

/** Null: the name is removed. */
type NameChange = readonly [name: string, inode: Inode | null]

/** Every operation that reached the disk, in order. */
type Operation =
  | { readonly kind: 'content'; readonly inode: Inode; readonly change: ContentChange }
  | { readonly kind: 'datasync'; readonly inode: Inode }
  /** A sync that failed: these changes are lost, although reads of the file return them. */
  | { readonly kind: 'lost'; readonly inode: Inode; readonly changes: ReadonlySet<ContentChange> }
  /** A rename has two changes, of which a crash may keep either: worse than any file system. */
  | { readonly kind: 'names'; readonly changes: readonly NameChange[] }
  | { readonly kind: 'sync-names' }

let inodes = 0

class Inode {
  readonly id = String(inodes++)
  /** Its content when the disk was created. */
  readonly initial: Buffer
  content: Buffer

  constructor(initial: Buffer) {
    this.initial = initial
    this.content = initial
  }
}

/**
 * The unsynced changes that a crash loses. `some`: any changes of names and any sectors of writes, so that
 * every state that any order of the changes could leave is possible. `reordered`: the first changes of the
 * directory and of each file, while the last ones are kept.
 */
export type Loss = 'nothing' | 'everything' | 'some' | 'reordered'

/** The losses that a crash caused. */
export type LostChange =
  | 'name'
  | 'write'
  | 'part of a write'
  | 'write before a kept one'
  | 'name before a kept one'

/** Fails operations: returns the code of the error, or undefined. */
export type Faults = (
  operation: 'open' | 'write' | 'datasync' | 'rename' | 'unlink' | 'sync',
) => string | undefined

/**
 * A directory in memory that records all operations, and can reproduce the state that a crash after any of
 * them would leave.
 */
export class SimulatedDisk implements Files {
  faults: Faults = () => undefined
  /** The capacity for all files, in bytes. A write beyond it fails with `ENOSPC` after the part that fits. */
  capacity = Number.POSITIVE_INFINITY
  /** The changes lost by the crash that left this disk. */
  readonly lostChanges: ReadonlySet<LostChange>
  readonly #operations: Operation[] = []
  readonly #initial: ReadonlyMap<string, Inode>
  readonly #names: Map<string, Inode>
  readonly #prng: Prng

  constructor(
    prng: Prng,
    files: ReadonlyMap<string, Buffer> = new Map(),
    lostChanges: ReadonlySet<LostChange> = new Set(),
  ) {
    this.#prng = prng
    this.lostChanges = lostChanges
    // Names with one content are names of one file.
    const inodes = new Map([...files.values()].map((content) => [content, new Inode(content)]))
    this.#initial = new Map([...files].map(([name, content]) => [name, inodes.get(content)!]))
    this.#names = new Map(this.#initial)
  }

  /** The number of operations. */
  get length(): number {
    return this.#operations.length
  }

  /** Whether the last of them was a rename. */
  get isAtRename(): boolean {
    const last = this.#operations.at(-1)
    return last?.kind === 'names' && last.changes.length > 1
  }

  get bytes(): number {
    return [...new Set(this.#names.values())].reduce((sum, { content }) => sum + content.length, 0)
  }

  get names(): string[] {
    return [...this.#names.keys()].sort()
  }

  contentOf(name: string): Buffer {
    return this.#names.get(name)!.content
  }

  /** The disk after a crash that follows the first `count` operations. */
  crashedAfter(count: number, loss: Loss, prng: Prng): SimulatedDisk {
    const files = new Map<Inode, FileChanges>()
    const fileOf = (inode: Inode): FileChanges => {
      const initial = { position: 0, bytes: inode.initial }
      const file = files.get(inode) ?? { synced: [initial], pending: [] }
      files.set(inode, file)
      return file
    }
    const synced: NameChange[] = []
    const pending: NameChange[] = []
    for (const operation of this.#operations.slice(0, count)) {
      if (operation.kind === 'names') pending.push(...operation.changes)
      else if (operation.kind === 'sync-names') synced.push(...pending.splice(0))
      else {
        const file = fileOf(operation.inode)
        if (operation.kind === 'content') file.pending.push(operation.change)
        else if (operation.kind === 'datasync') file.synced.push(...file.pending.splice(0))
        else file.pending = file.pending.filter((change) => !operation.changes.has(change))
      }
    }
    const lostChanges = new Set<LostChange>()
    const survivingNames = survivors(pending, loss, prng)
    noteLosses(lostChanges, 'name', pending, survivingNames)
    const names = new Map(this.#initial)
    for (const [name, inode] of [...synced, ...survivingNames]) {
      if (inode === null) names.delete(name)
      else names.set(name, inode)
    }
    const contentOf = (inode: Inode): Buffer => {
      const file = fileOf(inode)
      if (loss === 'some') {
        const pieces = file.pending.flatMap((change) => torn(change, prng, lostChanges))
        return contentAfter([...file.synced, ...pieces])
      }
      const surviving = survivors(file.pending, loss, prng)
      noteLosses(lostChanges, 'write', file.pending, surviving)
      return contentAfter([...file.synced, ...surviving])
    }
    const contents = new Map([...new Set(names.values())].map((inode) => [inode, contentOf(inode)]))
    const named = new Map([...names].map(([name, inode]) => [name, contents.get(inode)!]))
    return new SimulatedDisk(prng, named, lostChanges)
  }

  async list(): Promise<string[]> {
    return this.names
  }

  async size(name: string): Promise<number> {
    const inode = this.#names.get(name)
    if (inode === undefined) throw Object.assign(new Error(`${name} does not exist`), { code: 'ENOENT' })
    return inode.content.length
  }

  idOf(name: string): string | undefined {
    return name === '.' ? 'the directory' : this.#names.get(name)?.id
  }

  async open(name: string, mode: OpenMode): Promise<File> {
    this.#mayFail('open')
    let inode = this.#names.get(name)
    if (mode === 'create') {
      if (inode !== undefined) throw Object.assign(new Error(`${name} exists`), { code: 'EEXIST' })
      inode = new Inode(Buffer.alloc(0))
      this.#rename([[name, inode]])
    }
    if (inode === undefined) throw Object.assign(new Error(`${name} does not exist`), { code: 'ENOENT' })
    return this.#file(inode)
  }

  async rename(from: string, to: string): Promise<void> {
    this.#mayFail('rename')
    const inode = this.#names.get(from)
    if (inode === undefined) throw Object.assign(new Error(`${from} does not exist`), { code: 'ENOENT' })
    this.#rename([
      [to, inode],
      [from, null],
    ])
  }

  async unlink(name: string): Promise<void> {
    this.#mayFail('unlink')
    if (!this.#names.has(name)) throw Object.assign(new Error(`${name} does not exist`), { code: 'ENOENT' })
    this.#rename([[name, null]])
  }

  async syncDirectory(): Promise<void> {
    this.#mayFail('sync')
    this.#operations.push({ kind: 'sync-names' })
  }

  #rename(changes: readonly NameChange[]): void {
    for (const [name, inode] of changes) {
      if (inode === null) this.#names.delete(name)
      else this.#names.set(name, inode)
    }
    this.#operations.push({ kind: 'names', changes })
  }

  #file(inode: Inode): File {
    /** Since the last sync. */
    let unsynced: ContentChange[] = []
    const change = (change: ContentChange): void => {
      unsynced.push(change)
      this.#operations.push({ kind: 'content', inode, change: change })
      inode.content = applied(inode.content, change)
    }
    return {
      read: async (buffer, offset, length, position) => {
        const { content } = inode
        const start = Math.min(position, content.length)
        return { bytesRead: content.copy(buffer, offset, start, start + length) }
      },
      write: async (bytes, offset, length, position) => {
        const copy = Uint8Array.from(bytes.subarray(offset, offset + length))
        try {
          this.#mayFail('write')
        } catch (error) {
          // A part of it was written before it failed.
          change({ position, bytes: copy.subarray(0, this.#prng.below(copy.length)) })
          throw error
        }
        const growth = Math.max(0, position + copy.length - inode.content.length)
        const room = this.capacity - this.bytes
        if (growth > room) {
          change({ position, bytes: copy.subarray(0, Math.max(0, copy.length - growth + Math.max(0, room))) })
          throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
        }
        change({ position, bytes: copy })
        return { bytesWritten: length }
      },
      truncate: async (length) => {
        this.#mayFail('write')
        change({ length })
      },
      datasync: async () => {
        try {
          this.#mayFail('datasync')
        } catch (error) {
          const changes = new Set(unsynced.filter(() => this.#prng.chance(0.5)))
          this.#operations.push({ kind: 'lost', inode, changes })
          // The system considers the lost pages clean: a later sync succeeds without them.
          unsynced = []
          throw error
        }
        unsynced = []
        this.#operations.push({ kind: 'datasync', inode })
      },
      close: async () => {},
    }
  }

  #mayFail(operation: Parameters<Faults>[0]): void {
    const code = this.faults(operation)
    if (code !== undefined) throw Object.assign(new Error(`${operation} fails`), { code })
  }
}

/** The changes that are not lost. */
function survivors<Change>(changes: readonly Change[], loss: Loss, prng: Prng): readonly Change[] {
  if (loss === 'nothing') return changes
  if (loss === 'everything') return []
  if (loss === 'some') return changes.filter(() => prng.chance(0.5))
  return changes.slice(prng.below(changes.length + 1))
}

function noteLosses<Change>(
  lostChanges: Set<LostChange>,
  kind: 'name' | 'write',
  changes: readonly Change[],
  surviving: readonly Change[],
): void {
  if (surviving.length === changes.length) return
  lostChanges.add(kind)
  const first = changes.findIndex((change) => !surviving.includes(change))
  if (surviving.some((change) => changes.indexOf(change) > first))
    lostChanges.add(`${kind} before a kept one`)
}

/** The sectors of a write that reached the disk. */
function torn(change: ContentChange, prng: Prng, lostChanges: Set<LostChange>): ContentChange[] {
  if ('length' in change) return prng.chance(0.5) ? [change] : []
  const { position, bytes } = change
  const parts: Write[] = []
  for (let start = 0; start < bytes.length; ) {
    const end = Math.min(bytes.length, start + SECTOR_BYTES - ((position + start) % SECTOR_BYTES))
    if (prng.chance(0.5)) parts.push({ position: position + start, bytes: bytes.subarray(start, end) })
    start = end
  }
  const writtenBytes = parts.reduce((sum, part) => sum + part.bytes.length, 0)
  if (writtenBytes > 0 && writtenBytes < bytes.length) lostChanges.add('part of a write')
  return parts
}

function contentAfter(changes: readonly ContentChange[]): Buffer {
  return changes.reduce<Buffer>(applied, Buffer.alloc(0))
}

/** A copy: the contents of a disk that crashed are shared with it. */
function applied(content: Buffer, change: ContentChange): Buffer {
  if ('length' in change) return Buffer.concat([content], change.length)
  const end = change.position + change.bytes.length
  const next = end > content.length ? Buffer.concat([content], end) : Buffer.from(content)
  next.set(change.bytes, change.position)
  return next
}

/**
 * The operations of a process that is killed after a number of them, or at the first rename after that: later
 * calls never settle. The system continues to run.
 */
export class KilledProcess implements Files {
  readonly end: Promise<void>
  readonly #disk: SimulatedDisk
  readonly #operations: number
  readonly #atRename: boolean
  #isKilled = false
  #kill: () => void = () => {}

  constructor(disk: SimulatedDisk, operations: number, atRename: boolean) {
    this.#disk = disk
    this.#operations = operations
    this.#atRename = atRename
    this.end = new Promise((resolve) => {
      this.#kill = resolve
    })
  }

  list(): Promise<string[]> {
    return this.#do(() => this.#disk.list())
  }

  size(name: string): Promise<number> {
    return this.#do(() => this.#disk.size(name))
  }

  idOf(name: string): string | undefined {
    return this.#disk.idOf(name)
  }

  async open(name: string, mode: OpenMode): Promise<File> {
    const file = await this.#do(() => this.#disk.open(name, mode))
    return {
      read: (...args) => this.#do(() => file.read(...args)),
      write: (...args) => this.#do(() => file.write(...args)),
      truncate: (length) => this.#do(() => file.truncate(length)),
      datasync: () => this.#do(() => file.datasync()),
      close: () => this.#do(() => file.close()),
    }
  }

  rename(from: string, to: string): Promise<void> {
    return this.#do(() => this.#disk.rename(from, to))
  }

  unlink(name: string): Promise<void> {
    return this.#do(() => this.#disk.unlink(name))
  }

  syncDirectory(): Promise<void> {
    return this.#do(() => this.#disk.syncDirectory())
  }

  #do<Result>(operation: () => Result | Promise<Result>): Promise<Result> {
    this.#isKilled ||= this.#disk.length >= this.#operations && (!this.#atRename || this.#disk.isAtRename)
    if (!this.#isKilled) return Promise.resolve(operation())
    this.#kill()
    return new Promise(() => {})
  }
}
