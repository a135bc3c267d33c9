import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { threadId } from 'node:worker_threads'
import type { Clock } from '../../../../src/runtime/clock.ts'
import { isFullError } from '../files/errors.ts'
import type { File, Files } from '../files/files.ts'
import { nodeFiles } from '../files/node-files.ts'
import { type PinnedDirectory, pinDirectory } from '../files/pinned-directory.ts'
import { releaseReserve } from '../files/reserve.ts'
import { LockContenders } from './lock-contenders.ts'
import {
  encodeCandidate,
  isLeftoverName,
  LOCKED_SUFFIX,
  mayBeEmpty,
  type Owner,
  socketName,
} from './owner.ts'
import { openOwnerSocket } from './owner-socket.ts'

/** A directory that this process has locked. It stays locked when it is moved. */
export interface LockedDirectory {
  readonly files: Files
  /** Whether the disk was too full for the lock, so that the reserve was released. */
  readonly wasFull: boolean
  /** Whether a path leads to it. */
  isAt(path: string): Promise<boolean>
  /** Releases the lock. `files` must not be used afterwards. */
  release(): Promise<void>
}

/** How often a candidate checks whether the others have given up. */
const LOOK_EVERY_MS = 10
/** 5 s: a process that was stopped while opening must not block others forever. */
const LOOKS_MAX = 500

/**
 * Locks the directory, or rejects with `StorageFailure` of kind `blocked`, which names the owner. Of any
 * number of concurrent attempts, at most one succeeds. Rejects with the system's error if the directory
 * cannot be read or written.
 *
 * Each attempt creates its own owner file and then looks for others. It holds the lock once it sees none: of
 * two attempts, each created its file before it looked, so they cannot both miss the other. Among candidates
 * that see each other, the one with the lowest name wins. Removing the file of a dead owner is free of races,
 * because file names are never reused.
 */
export async function lockDirectory(path: string, clock: Clock): Promise<LockedDirectory> {
  return lock(path, clock, { isFull: false })
}

/**
 * Does the same as {@link lockDirectory}, also on a full disk: releases the reserve, or leaves the owner file
 * empty.
 */
export async function lockDirectoryOnFullDisk(path: string, clock: Clock): Promise<LockedDirectory> {
  try {
    return await lockDirectory(path, clock)
  } catch (error) {
    // There is no owner, or the attempt would have been rejected with `blocked`.
    if (!isFullError(error)) throw error
  }
  return lock(path, clock, { isFull: true })
}

async function lock(
  path: string,
  clock: Clock,
  { isFull }: { readonly isFull: boolean },
): Promise<LockedDirectory> {
  const directory = await pinDirectory(path)
  try {
    const files = nodeFiles(directory)
    if (isFull) await releaseReserve(files)
    const contenders = await LockContenders.of(directory)
    const release = await new LockAttempt(directory, contenders, isFull).acquire(clock)
    return {
      files,
      wasFull: isFull,
      isAt: (path) => directory.use((own) => isSameDirectory(own, path)).catch(() => false),
      async release() {
        try {
          await release()
        } finally {
          await directory.close()
        }
      },
    }
  } catch (error) {
    await directory.close()
    throw error
  }
}

async function isSameDirectory(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one, { bigint: true }), stat(other, { bigint: true })])
  return a.dev === b.dev && a.ino === b.ino
}

/** Resolves to whether the content was written. On a full disk, leaves the file empty if `mayBeEmpty`. */
async function tryWrite(file: File, content: Uint8Array, mayBeEmpty: boolean): Promise<boolean> {
  try {
    await file.write(content, 0)
    return true
  } catch (error) {
    if (!mayBeEmpty || !isFullError(error)) throw error
    await file.truncate(0)
    return false
  }
}

/**
 * Rejects with `StorageFailure` of kind `blocked` if another process has locked the directory or is opening
 * it. Changes nothing, so it works on read-only directories; another process may lock the directory
 * afterwards.
 */
export async function assertUnlocked(path: string): Promise<void> {
  const directory = await pinDirectory(path)
  try {
    const contenders = await LockContenders.of(directory)
    const [contender] = await contenders.findAlive(() => {})
    if (contender !== undefined) throw contenders.blockedError(contender)
  } finally {
    await directory.close()
  }
}

class LockAttempt {
  readonly #name = `owner-${randomUUID()}`
  readonly #directory: PinnedDirectory
  readonly #files: Files
  readonly #contenders: LockContenders
  readonly #isDiskFull: boolean

  constructor(directory: PinnedDirectory, contenders: LockContenders, isDiskFull: boolean) {
    this.#directory = directory
    this.#files = nodeFiles(directory)
    this.#contenders = contenders
    this.#isDiskFull = isDiskFull
  }

  /** Resolves to the function that releases the lock. */
  async acquire(clock: Clock): Promise<() => Promise<void>> {
    await this.#assertUnlocked()
    // The socket comes before the owner file: a process that finds the file without a listener takes its
    // owner for dead.
    const socket = await openOwnerSocket(this.#directory, socketName(this.#name))
    const release = async (): Promise<void> => {
      try {
        this.#directory.mark(undefined)
        await this.#remove(this.#name)
      } finally {
        await socket?.close()
      }
    }
    try {
      const { device, ...local } = this.#contenders.local
      const since = new Date(clock.now()).toISOString()
      await this.#createLock(
        { ...local, thread: threadId, since, ...(socket !== undefined && { device }) },
        clock,
      )
      await this.#removeLeftovers()
    } catch (error) {
      // The reason for the failure matters more than files that stay.
      await release().catch(() => {})
      throw error
    }
    return release
  }

  /** Fails before a file is created if the directory is locked. */
  async #assertUnlocked(): Promise<void> {
    const holder = (await this.#others()).find(({ isCandidate }) => !isCandidate)
    if (holder !== undefined) throw this.#contenders.blockedError(holder)
  }

  async #createLock(owner: Owner, clock: Clock): Promise<void> {
    const content = encodeCandidate(owner)
    const { file, isEmpty } = await this.#makeFile(content, this.#isDiskFull && mayBeEmpty(owner))
    try {
      this.#directory.mark(this.#name)
      await this.#waitForCandidates(clock)
      if (!isEmpty) await file.write(LOCKED_SUFFIX, content.length)
    } finally {
      await file.close()
    }
  }

  /**
   * The file gets its name once it is complete, so an incomplete owner file is always damage, never the trace
   * of a crash.
   */
  async #makeFile(
    content: Uint8Array,
    mayBeEmpty: boolean,
  ): Promise<{ readonly file: File; readonly isEmpty: boolean }> {
    const unfinished = `${this.#name}.tmp`
    const file = await this.#files.open(unfinished, 'create')
    try {
      const isEmpty = !(await tryWrite(file, content, mayBeEmpty))
      await file.datasync()
      await this.#files.rename(unfinished, this.#name)
      return { file, isEmpty }
    } catch (error) {
      await file.close()
      await this.#files.unlink(unfinished).catch(() => {})
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      // The new owner removed the unfinished file as a leftover.
      throw this.#contenders.blockedError((await this.#others())[0])
    }
  }

  /**
   * Resolves when no other process is left. Rejects if the directory is locked, or if a candidate with a
   * lower name exists.
   */
  async #waitForCandidates(clock: Clock): Promise<void> {
    for (let looks = 1; ; looks++) {
      const others = await this.#others()
      if (others.length === 0) return
      const first = others.find(({ isCandidate, name }) => !isCandidate || name < this.#name)
      if (first !== undefined || looks === LOOKS_MAX) throw this.#contenders.blockedError(first ?? others[0])
      await new Promise<void>((resolve) => clock.schedule(LOOK_EVERY_MS, resolve))
    }
  }

  /** The contenders that may be alive. Removes the files of the others. */
  #others() {
    return this.#contenders.findAlive((name) => this.#remove(name), this.#name)
  }

  /**
   * Removes what crashed processes left while they created or removed their files. A process that is creating
   * them gives up, as it would anyway.
   */
  async #removeLeftovers(): Promise<void> {
    for (const name of await this.#files.list()) {
      if (isLeftoverName(name) && name !== socketName(this.#name)) await this.#remove(name)
    }
  }

  /** Another process may have removed the file, or moved it with the directory. */
  async #remove(name: string): Promise<void> {
    await this.#files.unlink(name).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ESTALE') throw error
    })
  }
}
