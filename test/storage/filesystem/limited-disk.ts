import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'

const BLOCK_BYTES = 4096

const handle = await open(process.execPath)
const HANDLE: FileHandle = Object.getPrototypeOf(handle)
await handle.close()

/** A directory on a disk of limited size, for the writes of this process. */
export interface LimitedDisk {
  /** How many bytes of the directory fit. Writes that need more fail with `ENOSPC`, after what fits. */
  capacity: number
  /** The bytes in use, in whole blocks. */
  readonly used: number
  /** Ends the limit. */
  end(): void
}

type Write = (bytes: Uint8Array, offset: number, length: number, position: number) => Promise<unknown>

/** Replaces the `write` of file handles: only root could mount a small file system. */
export function limitDisk(directory: string): LimitedDisk {
  const write = HANDLE.write as Write
  const disk: LimitedDisk = {
    capacity: Number.POSITIVE_INFINITY,
    get used() {
      return usedBytes(directory)
    },
    end() {
      HANDLE.write = write as never
    },
  }
  HANDLE.write = async function (this: FileHandle, bytes, offset, length, position) {
    const room = blocksOf(fs.fstatSync(this.fd).size) + Math.max(0, disk.capacity - disk.used)
    const fitting = Math.min(length, Math.max(0, room - position))
    if (fitting > 0) return write.call(this, bytes, offset, fitting, position)
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  } satisfies Write as never
  return disk
}

function usedBytes(directory: string): number {
  return fs.readdirSync(directory).reduce((sum, name) => {
    const stats = fs.lstatSync(join(directory, name), { throwIfNoEntry: false })
    return sum + blocksOf(stats?.isFile() ? stats.size : 0)
  }, 0)
}

/** The bytes that a file of this length occupies. */
function blocksOf(length: number): number {
  return Math.ceil(length / BLOCK_BYTES) * BLOCK_BYTES
}
