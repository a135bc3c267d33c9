import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../src/storage/clock.ts'
import type { File, Files } from './files.ts'
import { nodeFiles } from './node-files.ts'
import { encodeCandidate, isLeftName, OWNED, type Owner, socketOf } from './owner-file.ts'
import { listenAsOwner } from './owner-socket.ts'
import { type PinnedDirectory, pinDirectory } from './pinned-directory.ts'
import { Rivals } from './rivals.ts'

/** A directory that this process owns, wherever it is moved. */
export interface OwnedDirectory {
  readonly files: Files
  /** Gives it up. `files` must not be used any more. */
  release(): Promise<void>
}

/** How often a candidate looks whether those that have to give up are gone. */
const LOOK_EVERY_MS = 10
/** 5 s: one that was stopped in the midst of it must not hold up others for ever. */
const LOOKS_MAX = 500

/**
 * Becomes the owner of the directory, or rejects with `StorageFailure` of kind `blocked` that names who is. Of any number that come at once, exactly
 * one gets it. Rejects with the system's error when the directory cannot be read or written to.
 *
 * Each makes a file of its own and then looks for others, and has the directory when it sees nobody: of two, each made its file before it looked, so they
 * never both see nobody. Of candidates that see each other, all give up but the one whose name comes first. A file of an owner that is gone can be
 * removed without a race, for nobody makes a file with its name again.
 */
export async function ownDirectory(path: string, clock: Clock): Promise<OwnedDirectory> {
  const directory = await pinDirectory(path)
  try {
    const giveUp = await new Claim(directory, await Rivals.of(directory)).enforce(clock)
    return {
      files: nodeFiles(directory),
      async release() {
        try {
          await giveUp()
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

/**
 * Rejects with `StorageFailure` of kind `blocked` when somebody has the directory, or opens it, and changes nothing: for a directory that cannot be written
 * to. Nothing keeps others from opening it afterwards.
 */
export async function refuseOwners(path: string): Promise<void> {
  const directory = await pinDirectory(path)
  try {
    const rivals = await Rivals.of(directory)
    const [rival] = await rivals.alive(() => {})
    if (rival !== undefined) throw rivals.blockedBy(rival)
  } finally {
    await directory.close()
  }
}

class Claim {
  readonly #name = `owner-${randomUUID()}`
  readonly #directory: PinnedDirectory
  readonly #files: Files
  readonly #rivals: Rivals

  constructor(directory: PinnedDirectory, rivals: Rivals) {
    this.#directory = directory
    this.#files = nodeFiles(directory)
    this.#rivals = rivals
  }

  /** Resolves, when the directory is this process's, to how to give it up. */
  async enforce(clock: Clock): Promise<() => Promise<void>> {
    await this.#refuseHolder()
    // Before there is the file that names it: who finds the file and no listener takes its owner for dead.
    const socket = await listenAsOwner(this.#directory, socketOf(this.#name))
    const giveUp = async (): Promise<void> => {
      try {
        this.#directory.mark(undefined)
        await this.#remove(this.#name)
      } finally {
        await socket?.close()
      }
    }
    try {
      const { device, ...here } = this.#rivals.here
      const since = new Date(clock.now()).toISOString()
      await this.#become({ ...here, since, ...(socket !== undefined && { device }) }, clock)
      await this.#removeLeft()
    } catch (error) {
      // That it could not be opened says more than that the files stay.
      await giveUp().catch(() => {})
      throw error
    }
    return giveUp
  }

  /** Makes no file when it would be in vain. */
  async #refuseHolder(): Promise<void> {
    const holder = (await this.#others()).find(({ isCandidate }) => !isCandidate)
    if (holder !== undefined) throw this.#rivals.blockedBy(holder)
  }

  async #become(owner: Owner, clock: Clock): Promise<void> {
    const content = encodeCandidate(owner)
    const file = await this.#makeFile(content)
    try {
      this.#directory.mark(this.#name)
      await this.#outlastCandidates(clock)
      await file.write(OWNED, content.length)
    } finally {
      await file.close()
    }
  }

  /** It has its name when it is whole, so that a file that is not whole is damaged, and never one of a crash. */
  async #makeFile(content: Uint8Array): Promise<File> {
    const unfinished = `${this.#name}.tmp`
    const file = await this.#files.open(unfinished, 'create')
    try {
      await file.write(content, 0)
      await file.datasync()
      await this.#files.rename(unfinished, this.#name)
      return file
    } catch (error) {
      await file.close()
      await this.#files.unlink(unfinished).catch(() => {})
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      // One that has the directory since took it for something that was left.
      throw this.#rivals.blockedBy((await this.#others())[0])
    }
  }

  /** Resolves when nobody else is there; rejects when somebody has the directory, or when a candidate comes first. */
  async #outlastCandidates(clock: Clock): Promise<void> {
    for (let looks = 1; ; looks++) {
      const others = await this.#others()
      if (others.length === 0) return
      const first = others.find(({ isCandidate, name }) => !isCandidate || name < this.#name)
      if (first !== undefined || looks === LOOKS_MAX) throw this.#rivals.blockedBy(first ?? others[0])
      await new Promise<void>((resolve) => clock.schedule(LOOK_EVERY_MS, resolve))
    }
  }

  /** Those that may be alive. What the others left is removed. */
  #others() {
    return this.#rivals.alive((name) => this.#remove(name), this.#name)
  }

  /** What those left that crashed while they made their files or removed them. One that is just making them gives up, as it would anyway. */
  async #removeLeft(): Promise<void> {
    for (const name of await this.#files.list()) {
      if (isLeftName(name) && name !== socketOf(this.#name)) await this.#remove(name)
    }
  }

  /** Somebody else may have removed it, or moved it away with the directory. */
  async #remove(name: string): Promise<void> {
    await this.#files.unlink(name).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ESTALE') throw error
    })
  }
}
