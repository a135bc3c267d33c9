import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

const BLOCK_BYTES = 4096

/** A directory on a disk of limited size, for the writes of this process to a position. */
export interface LimitedDisk {
  /** How many bytes of the directory fit. Writes that need more fail with `ENOSPC`, after what fits. */
  capacity: number
  /** The bytes in use, in whole blocks. */
  readonly used: number
  /** Ends the limit. */
  end(): void
}

/** Replaces `write` and `writeSync` of `node:fs`: only root could mount a small file system. */
export function limitDisk(directory: string): LimitedDisk {
  const { write, writeSync } = fs
  const disk: LimitedDisk = {
    capacity: Number.POSITIVE_INFINITY,
    get used() {
      return usedBytes(directory)
    },
    end() {
      fs.write = write
      fs.writeSync = writeSync
      syncBuiltinESMExports()
    },
  }
  type Done = (error: NodeJS.ErrnoException | null, written: number) => void
  const limited = (fd: number, bytes: Uint8Array, start: number, length: number, at: number, done: Done) => {
    const fitting = fittingBytes(fd, length, at)
    if (fitting > 0) write(fd, bytes, start, fitting, at, done)
    else setImmediate(done, noSpace(), 0)
  }
  const limitedSync = (fd: number, bytes: Uint8Array, start: number, length: number, at?: number) => {
    // Without a position: output of this process.
    if (at === undefined) return writeSync(fd, bytes, start, length)
    const fitting = fittingBytes(fd, length, at)
    if (fitting === 0) throw noSpace()
    return writeSync(fd, bytes, start, fitting, at)
  }
  function fittingBytes(fd: number, length: number, at: number): number {
    const room = blocksOf(fs.fstatSync(fd).size) + Math.max(0, disk.capacity - disk.used)
    return Math.min(length, Math.max(0, room - at))
  }
  fs.write = limited as unknown as typeof write
  fs.writeSync = limitedSync as unknown as typeof writeSync
  syncBuiltinESMExports()
  return disk
}

function noSpace(): NodeJS.ErrnoException {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
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
