import { randomUUID } from 'node:crypto'
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { nodeFiles } from './node-files.ts'
import { isForsaken, listenAsOwner, type OwnerSocket } from './owner-socket.ts'
import { mayRun, type ProcessIdentity, thisProcess } from './process-identity.ts'

interface Owner extends ProcessIdentity {
  /** When it opened the directory. */
  readonly since: string
  /** Where its socket is; none where there can be none. */
  readonly device?: number
}

/** A file of an owner; one that is damaged does not tell whose it is. */
interface Found {
  readonly path: string
  readonly owner: Owner | undefined
}

const NAME = /^owner-[0-9a-f-]{36}$/
const LEFT_NAME = /^owner-[0-9a-f-]{36}\.(tmp|sock|sock\.tmp)$/

/**
 * Becomes the owner of the directory, or rejects with `StorageFailure` of kind `blocked` that names who is. Resolves to how to give it up.
 *
 * Each makes a file of its own and then looks for others. Of two that come at once, each made its file before it looked, so at least one sees the other
 * and gives up. A file of an owner that is gone can be removed without a race, for nobody makes a file with its name again.
 */
export async function becomeOwner(directory: string, now: number): Promise<() => Promise<void>> {
  const own = await thisProcess()
  await refuseOthers(directory, undefined, own)
  const name = `owner-${randomUUID()}`
  const path = join(directory, name)
  // Before there is the file that names it: who finds the file and no listener takes its owner for dead.
  const socket = await listenAsOwner(directory, socketOf(name))
  try {
    await write(directory, name, { ...own, since: new Date(now).toISOString(), ...deviceOf(socket) })
    await refuseOthers(directory, name, own)
    await removeLeft(directory, socketOf(name))
  } catch (error) {
    // That it could not be opened says more than that the files stay.
    await unlink(path).catch(() => {})
    await socket?.close().catch(() => {})
    throw error
  }
  return async () => {
    // Somebody who was told to remove it did: there is nothing left to give up.
    await unlink(path).catch(ignoreMissing)
    await socket?.close()
  }
}

function socketOf(name: string): string {
  return `${name}.sock`
}

function deviceOf(socket: OwnerSocket | undefined): { readonly device?: number } {
  return socket === undefined ? {} : { device: socket.device }
}

/** It has its name when it is whole, so that a file that is not whole is damaged, and never one of a crash. */
async function write(directory: string, name: string, owner: Owner): Promise<void> {
  const files = nodeFiles(directory)
  const unfinished = `${name}.tmp`
  const file = await files.open(unfinished, 'create')
  try {
    try {
      await file.write(Buffer.from(JSON.stringify(owner)), 0)
      await file.datasync()
    } finally {
      await file.close()
    }
    await files.rename(unfinished, name)
  } catch (error) {
    await files.unlink(unfinished).catch(() => {})
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await refuseOthers(directory, undefined, owner)
    throw blocked(directory, undefined)
  }
}

/** What those left that crashed while they made their files or removed them. One that is just making them gives up, as it would anyway. */
async function removeLeft(directory: string, except: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name !== except && LEFT_NAME.test(name)) await unlink(join(directory, name)).catch(ignoreMissing)
  }
}

async function refuseOthers(
  directory: string,
  except: string | undefined,
  own: ProcessIdentity,
): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name === except || !NAME.test(name)) continue
    const path = join(directory, name)
    const text = await contentOf(path)
    if (text === undefined) continue
    const owner = parse(text)
    if (owner === undefined || !(await isGone(owner, own, directory, name))) {
      throw blocked(directory, { path, owner })
    }
    await unlink(path).catch(ignoreMissing)
  }
}

async function isGone(owner: Owner, own: ProcessIdentity, directory: string, name: string): Promise<boolean> {
  if (!(await mayRun(owner, own))) return true
  // Another kernel would find nobody listening either.
  const isSameKernel = owner.boot !== undefined && owner.boot === own.boot
  return isSameKernel && owner.device !== undefined && isForsaken(directory, socketOf(name), owner.device)
}

/** Without what was found: by one that came at the same time, and may have given up already. */
function blocked(directory: string, found: Found | undefined): StorageFailure {
  const message =
    found === undefined
      ? `${directory} is being opened by another process at the same time`
      : `${directory} is open in ${nameOf(found.owner)}. If that process is gone for certain, remove ${found.path}`
  return new StorageFailure('blocked', message, { nothingWritten: true })
}

function nameOf(owner: Owner | undefined): string {
  if (owner === undefined) return 'a process that cannot be told'
  return `process ${owner.pid} on ${owner.host}, since ${owner.since}`
}

/** Undefined when the file is damaged. */
function parse(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text)
    return typeof owner?.pid === 'number' && typeof owner.host === 'string' ? owner : undefined
  } catch {
    return undefined
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(ignoreMissing)
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
