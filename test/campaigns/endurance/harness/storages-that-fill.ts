import type { File, Files } from '../../../../adapters/storage/filesystem/files/files.ts'
import { nodeFiles } from '../../../../adapters/storage/filesystem/files/node-files.ts'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import type { Storage, StorageContext } from '../../../../src/storage/contract.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { hookedFiles, systemError } from '../../../storage/filesystem/hooked-files.ts'
import { openFiles } from '../../../storage/filesystem/open-files.ts'

/** A real directory on a disk that the test declares full. Half of each write still fits. */
export class DirectoryThatFills implements Storage {
  isFull = false
  readonly manifest: Storage['manifest']
  readonly #files: Files

  constructor(path: string) {
    this.manifest = filesystem(path, { durability: 'process-crash' }).manifest
    const real = nodeFiles(path)
    const torn: Files = { ...real, open: async (name, mode) => this.#filling(await real.open(name, mode)) }
    this.#files = hookedFiles(torn, (operation, _, mode) => {
      if (this.isFull && operation === 'open' && mode === 'create') throw systemError('ENOSPC')
    })
  }

  open() {
    return openFiles(this.#files, { durability: 'process-crash' }, async () => {})
  }

  #filling(file: File): File {
    return {
      size: () => file.size(),
      read: (buffer, position) => file.read(buffer, position),
      truncate: (length) => file.truncate(length),
      isLinked: () => file.isLinked(),
      isNamed: (name) => file.isNamed(name),
      datasync: () => file.datasync(),
      close: () => file.close(),
      write: async (bytes, position) => {
        if (!this.isFull) return file.write(bytes, position)
        await file.write(bytes.subarray(0, bytes.length >> 1), position)
        throw systemError('ENOSPC')
      },
    }
  }
}

/** A storage that rejects writes while it is full, as one with a quota does. */
export class MemoryThatFills implements Storage {
  isFull = false
  readonly manifest: Storage['manifest']
  readonly #inner: Storage

  constructor(inner: Storage) {
    this.#inner = inner
    this.manifest = inner.manifest
  }

  async open(context: StorageContext) {
    const session = await this.#inner.open(context)
    const unlessFull = async <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (this.isFull) throw new StorageFailure('quota', 'no space left', { nothingWritten: true })
      return work()
    }
    return new Proxy(session, {
      get: (target, name: keyof typeof session) => {
        if (name === 'append')
          return (...args: Parameters<typeof session.append>) => unlessFull(() => target.append(...args))
        if (name === 'commit')
          return (...args: Parameters<typeof session.commit>) => unlessFull(() => target.commit(...args))
        return target[name]?.bind(target)
      },
    })
  }
}
