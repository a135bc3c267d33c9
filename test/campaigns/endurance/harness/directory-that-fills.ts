import type { File, Files } from '../../../../adapters/storage/filesystem/files/files.ts'
import { nodeFiles } from '../../../../adapters/storage/filesystem/files/node-files.ts'
import { filesystem } from '../../../../adapters/storage/filesystem/index.ts'
import type { Storage } from '../../../../src/storage/contract.ts'
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
