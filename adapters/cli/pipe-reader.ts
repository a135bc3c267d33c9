import { fstatSync, writeSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'

import { isBrokenPipe } from './errors.ts'

const POLL_MS = 100

export interface PipeWatch {
  /** Aborts with `EPIPE` when no process reads the pipe any more. */
  readonly signal: AbortSignal
  /** Resolves when the readers are known. A write before that may be the last that they wait for. */
  readonly ready: Promise<void>
  dispose(): void
}

/**
 * Watches the processes that read a pipe. Without it, a command learns from its next write that they are
 * gone, and that may never come. Linux lists them; the signal never aborts if they belong to another user or
 * container. Elsewhere an empty write fails, except on Windows, where the signal never aborts.
 */
export function watchPipe(stream: NodeJS.WritableStream, platform = process.platform): PipeWatch {
  const gone = new AbortController()
  const { fd } = stream as NodeJS.WritableStream & { readonly fd?: number | undefined }
  const stats = fd === undefined || platform === 'win32' ? undefined : fstatSync(fd)
  let isDone = !stats?.isFIFO()
  let timer: NodeJS.Timeout | undefined
  const end = () => gone.abort(Object.assign(new Error('the reader of the pipe is gone'), { code: 'EPIPE' }))
  const pollReaders = async (known: readonly string[]) => {
    const pipe = `pipe:[${stats!.ino}]`
    const readers = (await areOpen(known, pipe)) ? known : await readersOf(pipe)
    if (isDone || (known.length === 0 && readers.length === 0)) return
    if (readers.length > 0) timer = setTimeout(() => void pollReaders(readers), POLL_MS)
    else end()
  }
  const pollPipe = async () => {
    if (isDone) return
    if (takesWrites(fd!)) timer = setTimeout(() => void pollPipe(), POLL_MS)
    else end()
  }
  return {
    signal: gone.signal,
    ready: isDone ? Promise.resolve() : platform === 'linux' ? pollReaders([]) : pollPipe(),
    dispose() {
      isDone = true
      clearTimeout(timer)
    },
  }
}

/** Returns whether an empty write to a pipe succeeds. On Linux, it always does. */
function takesWrites(fd: number): boolean {
  try {
    writeSync(fd, new Uint8Array())
    return true
  } catch (error) {
    // A full pipe has a reader.
    return !isBrokenPipe(error)
  }
}

/** Returns whether one of the descriptors is still open. */
async function areOpen(descriptors: readonly string[], pipe: string): Promise<boolean> {
  for (const descriptor of descriptors) {
    try {
      if ((await readlink(descriptor)) === pipe) return true
    } catch (error) {
      // A reader that has become another user's may go on reading.
      if ((error as NodeJS.ErrnoException).code === 'EACCES') return true
    }
  }
  return false
}

/** Lists the descriptors, as paths, with which other processes of the user read a pipe. */
async function readersOf(pipe: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const pid of await listed('/proc')) {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) continue
    for (const fd of await listed(`/proc/${pid}/fd`)) {
      const descriptor = `/proc/${pid}/fd/${fd}`
      if ((await readlink(descriptor).catch(() => undefined)) !== pipe) continue
      const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'utf8').catch(() => '')
      // The last two bits of the octal number are the mode: 0 reads, 1 writes.
      if (/^flags:\s*[0-7]*[04]$/m.test(info)) found.push(descriptor)
    }
  }
  return found
}

function listed(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => [])
}
