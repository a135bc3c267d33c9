import type { File, Files, OpenMode } from '../../../adapters/storage/media/files.ts'

type FilesOperation = keyof Files | keyof File

/**
 * Called before each operation on a name ('' for the directory): may wait, and may throw what the operation
 * then rejects with.
 */
export type Hook = (operation: FilesOperation, name: string, mode?: OpenMode) => unknown

/** Files of a slow, busy or failing system. */
export function hookedFiles(files: Files, hook: Hook): Files {
  async function hooked<Result>(
    work: () => Result | Promise<Result>,
    ...operation: Parameters<Hook>
  ): Promise<Result> {
    await hook(...operation)
    return work()
  }
  return {
    list: () => hooked(() => files.list(), 'list', ''),
    size: (name) => hooked(() => files.size(name), 'size', name),
    idOf: (name) => files.idOf(name),
    async open(name, mode) {
      const file = await hooked(() => files.open(name, mode), 'open', name, mode)
      let isClosed = false
      return {
        read: (...args) => hooked(() => file.read(...args), 'read', name, mode),
        write: (...args) => hooked(() => file.write(...args), 'write', name, mode),
        truncate: (length) => hooked(() => file.truncate(length), 'truncate', name, mode),
        datasync: () => hooked(() => file.datasync(), 'datasync', name, mode),
        async close() {
          if (isClosed) return
          isClosed = true
          await hooked(() => file.close(), 'close', name, mode)
        },
      }
    },
    rename: (from, to) => hooked(() => files.rename(from, to), 'rename', to),
    unlink: (name) => hooked(() => files.unlink(name), 'unlink', name),
    syncDirectory: () => hooked(() => files.syncDirectory(), 'syncDirectory', ''),
  }
}

/** An error of the system. */
export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: injected`), { code })
}
