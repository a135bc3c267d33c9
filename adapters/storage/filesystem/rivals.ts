import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { Files } from './files.ts'
import { localFileSystem } from './local-file-system.ts'
import { nodeFiles } from './node-files.ts'
import { isCandidate, isOwnerName, OWNER_BYTES_MAX, type Owner, parseOwner, socketOf } from './owner-file.ts'
import { type Here, isGone } from './owner-liveness.ts'
import { askOwner } from './owner-socket.ts'
import type { PinnedDirectory } from './pinned-directory.ts'
import { thisProcess } from './process-identity.ts'

/** Somebody else who has a directory, or opens it. */
export interface Rival {
  readonly name: string
  /** Undefined when its file is damaged, so that it does not tell whose it is. */
  readonly owner: Owner | undefined
  /** It has not made sure yet that it is alone. */
  readonly isCandidate: boolean
}

/** Looks for others in a directory. */
export class Rivals {
  readonly here: Here
  readonly #directory: PinnedDirectory
  readonly #files: Files

  private constructor(directory: PinnedDirectory, here: Here) {
    this.#directory = directory
    this.#files = nodeFiles(directory)
    this.here = here
  }

  static async of(directory: PinnedDirectory): Promise<Rivals> {
    const [identity, device, filesystem] = await Promise.all([
      thisProcess(),
      directory.use(async (path) => (await stat(path)).dev),
      directory.use(localFileSystem),
    ])
    return new Rivals(directory, { ...identity, device, ...(filesystem !== undefined && { filesystem }) })
  }

  /** Those that may be alive, except the one of that name. `onGone` is told the names of the others. */
  async alive(onGone: (name: string) => unknown, except?: string): Promise<Rival[]> {
    const alive: Rival[] = []
    for (const name of await this.#files.list()) {
      if (name === except || !isOwnerName(name)) continue
      const text = await this.#contentOf(name)
      if (text === undefined) continue
      const owner = parseOwner(text)
      if (owner !== undefined && (await this.#isGone(name, owner))) await onGone(name)
      else alive.push({ name, owner, isCandidate: owner !== undefined && isCandidate(text) })
    }
    return alive
  }

  /** Without a rival: one that came at the same time, and may have given up already. */
  blockedBy(rival: Rival | undefined): StorageFailure {
    return new StorageFailure('blocked', this.#messageOf(rival), { nothingWritten: true })
  }

  #messageOf(rival: Rival | undefined): string {
    const { path } = this.#directory
    if (rival === undefined) return `${path} is being opened by another process at the same time`
    const how = rival.isCandidate ? 'being opened by' : 'open in'
    const file = join(path, rival.name)
    return `${path} is ${how} ${nameOf(rival.owner)}. If that process is gone for certain, remove ${file}`
  }

  async #isGone(name: string, owner: Owner): Promise<boolean> {
    const answer = owner.device === undefined ? 'none' : await askOwner(this.#directory, socketOf(name))
    return isGone(owner, this.here, answer)
  }

  /** Undefined when there is none any more. */
  async #contentOf(name: string): Promise<string | undefined> {
    const file = await this.#files.open(name, 'read').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (file === undefined) return undefined
    try {
      const bytes = Buffer.alloc(OWNER_BYTES_MAX)
      return bytes.toString('utf8', 0, await file.read(bytes, 0))
    } finally {
      await file.close()
    }
  }
}

function nameOf(owner: Owner | undefined): string {
  if (owner === undefined) return 'a process that cannot be told'
  return `process ${owner.pid} on ${owner.host}, since ${owner.since}`
}
