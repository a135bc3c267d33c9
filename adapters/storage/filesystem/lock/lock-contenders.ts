import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { Files } from '../files/files.ts'
import { nodeFiles } from '../files/node-files.ts'
import type { PinnedDirectory } from '../files/pinned-directory.ts'
import { currentProcess, type Liveness, localFileSystem } from './local-process.ts'
import {
  emptyOwnerLiveness,
  isCandidate,
  isOwnerName,
  type LocalProcess,
  OWNER_BYTES_MAX,
  type Owner,
  ownerLiveness,
  parseOwner,
  socketName,
} from './owner.ts'
import { probeOwnerSocket } from './owner-socket.ts'

/** Another process that has locked the directory or is opening it. */
interface LockContender {
  readonly name: string
  /** Undefined if its owner file is damaged. */
  readonly owner: Owner | undefined
  /** Whether it is still opening the directory. */
  readonly isCandidate: boolean
  /** Whether it is certainly running. */
  readonly isAlive: boolean
}

/** Finds other processes that use a directory. */
export class LockContenders {
  readonly local: LocalProcess
  readonly #directory: PinnedDirectory
  readonly #files: Files

  private constructor(directory: PinnedDirectory, local: LocalProcess) {
    this.#directory = directory
    this.#files = nodeFiles(directory)
    this.local = local
  }

  static async of(directory: PinnedDirectory): Promise<LockContenders> {
    const [identity, device, filesystem] = await Promise.all([
      currentProcess(),
      directory.use(async (path) => (await stat(path)).dev),
      directory.use(localFileSystem),
    ])
    return new LockContenders(directory, {
      ...identity,
      device,
      ...(filesystem !== undefined && { filesystem }),
    })
  }

  /**
   * The contenders that may be alive, except the one named `except`. Calls `onDead` with the owner file of
   * each dead one.
   */
  async findAlive(onDead: (name: string) => unknown, except?: string): Promise<LockContender[]> {
    const alive: LockContender[] = []
    for (const name of await this.#files.list()) {
      if (name === except || !isOwnerName(name)) continue
      const text = await this.#contentOf(name)
      if (text === undefined) continue
      const owner = parseOwner(text)
      const liveness = await this.#livenessOf(name, owner, text === '')
      if (liveness === 'dead') await onDead(name)
      else {
        const asCandidate = owner !== undefined && isCandidate(text)
        alive.push({ name, owner, isCandidate: asCandidate, isAlive: liveness === 'alive' })
      }
    }
    return alive
  }

  /**
   * The error of a blocked lock. Without a contender, a concurrent attempt won, and may have given up since.
   */
  blockedError(contender: LockContender | undefined): StorageFailure {
    return new StorageFailure('blocked', this.#messageOf(contender), { nothingWritten: true })
  }

  #messageOf(contender: LockContender | undefined): string {
    const { path } = this.#directory
    if (contender === undefined) return `${path} is being opened by another process at the same time`
    const how = contender.isCandidate ? 'being opened by' : 'open in'
    const where = `${path} is ${how} ${this.#nameOf(contender.owner)}`
    if (contender.isAlive) return where
    return `${where}. If that process no longer exists, remove ${join(path, contender.name)}`
  }

  #nameOf(owner: Owner | undefined): string {
    if (owner === undefined) return 'an unknown process (its owner file is damaged, or the disk was full)'
    if (owner.thread === undefined || !this.#isThisProcess(owner))
      return `process ${owner.pid} on ${owner.host || 'an unknown host'}, since ${owner.since}`
    // In one thread, engines share the directory: see `openDirectory`.
    return owner.thread === threadId
      ? `this process (${owner.pid}), by another path or global scope`
      : `another thread of this process (${owner.pid})`
  }

  #isThisProcess(owner: Owner): boolean {
    const { pid, host, boot, namespace, started } = this.local
    return (
      owner.pid === pid &&
      owner.host === host &&
      owner.boot === boot &&
      owner.namespace === namespace &&
      owner.started === started
    )
  }

  async #livenessOf(name: string, owner: Owner | undefined, isEmpty: boolean): Promise<Liveness> {
    const hasSocket = isEmpty || owner?.device !== undefined
    const answer = hasSocket ? await probeOwnerSocket(this.#directory, socketName(name)) : 'none'
    if (isEmpty) return emptyOwnerLiveness(this.local, answer)
    return owner === undefined ? 'unknown' : ownerLiveness(owner, this.local, answer)
  }

  /** Undefined if the file no longer exists. */
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
