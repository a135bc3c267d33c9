import { randomUUID } from 'node:crypto'
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { nodeFiles } from './node-files.ts'
import { mayRun, type ProcessIdentity, thisProcess } from './process-identity.ts'

interface Owner extends ProcessIdentity {
  /** When it opened the directory. */
  readonly since: string
}

const NAME = /^owner-[0-9a-f-]{36}$/
const UNFINISHED_NAME = /^owner-[0-9a-f-]{36}\.tmp$/

/**
 * Becomes the owner of the directory, or rejects with `StorageFailure` of kind `blocked` that names who is. Resolves to how to give it up.
 *
 * Each makes a file of its own and then looks for others. Of two that come at once, each made its file before it looked, so at least one sees the other
 * and gives up. A file of an owner that is gone can be removed without a race, for nobody makes a file with its name again.
 */
export async function becomeOwner(directory: string, now: number): Promise<() => Promise<void>> {
  await refuseOthers(directory, undefined)
  const owner: Owner = { ...(await thisProcess()), since: new Date(now).toISOString() }
  const name = `owner-${randomUUID()}`
  const path = join(directory, name)
  await write(directory, name, owner)
  try {
    await refuseOthers(directory, name)
    await removeUnfinished(directory)
  } catch (error) {
    await unlink(path)
    throw error
  }
  return () => unlink(path)
}

/** It has its name when it is whole, so that a file that is not whole is damaged, and never one of a crash. */
async function write(directory: string, name: string, owner: Owner): Promise<void> {
  const files = nodeFiles(directory)
  const file = await files.open(`${name}.tmp`, 'create')
  try {
    await file.write(Buffer.from(JSON.stringify(owner)), 0)
    await file.datasync()
  } finally {
    await file.close()
  }
  await files.rename(`${name}.tmp`, name)
}

/** Of those that crashed while they made their file. One that is just making it fails, as it would anyway. */
async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (UNFINISHED_NAME.test(name)) await unlink(join(directory, name)).catch(ignoreMissing)
  }
}

async function refuseOthers(directory: string, own: string | undefined): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name === own || !NAME.test(name)) continue
    const path = join(directory, name)
    const text = await contentOf(path)
    if (text === undefined) continue
    const owner = parse(text)
    if (owner === undefined || (await mayRun(owner))) throw blocked(directory, path, owner)
    await unlink(path).catch(ignoreMissing)
  }
}

function blocked(directory: string, path: string, owner: Owner | undefined): StorageFailure {
  const who =
    owner === undefined
      ? 'a process that cannot be told'
      : `process ${owner.pid} on ${owner.host}, since ${owner.since}`
  return new StorageFailure(
    'blocked',
    `${directory} is open in ${who}. If that process is gone for certain, remove ${path}`,
    { nothingWritten: true },
  )
}

/** Undefined when the file is damaged. */
function parse(text: string): Owner | undefined {
  try {
    return JSON.parse(text)
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
