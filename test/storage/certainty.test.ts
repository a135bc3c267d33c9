import 'fake-indexeddb/auto'
import { appendFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { lockDirectory } from '../../adapters/storage/media/lock.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, HeadwaterError, open } from '../../src/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import type { Storage, StorageSession } from '../../src/storage/contract.ts'
import { temporaryDirectory } from './filesystem/directories.ts'
import { type Faults, SimulatedDisk } from './filesystem/simulated-disk.ts'
import { openSimulated } from './filesystem/workload.ts'
import { type Fault, injectFaults, limitSpace } from './indexeddb/faults.ts'

let databases = 0

afterEach(() => {
  injectFaults([])
  limitSpace(undefined)
})

interface Opened {
  readonly hw: Engine
  readonly session: StorageSession
}

/** An engine with one stream, and the session of its storage. */
async function openEngine(storage: Storage): Promise<Opened> {
  let session: StorageSession | undefined
  const hw = await open({
    storage: {
      manifest: storage.manifest,
      open: async (context) => {
        session = await storage.open(context)
        return session
      },
    },
  })
  onTestFinished(() => hw.close().catch(() => {}))
  await hw.basin('my-basin').stream('log').append('before')
  return { hw, session: session! }
}

/** Resolves to the code of the error and whether the call may have had an effect. */
async function failureOf(call: Promise<unknown>): Promise<[string, boolean]> {
  const error = await call.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (!HeadwaterError.is(error)) throw new Error('expected a HeadwaterError', { cause: error })
  return [error.code, error.mayHaveEffects]
}

const append = ({ hw }: Opened, body = 'x') => hw.basin('my-basin').stream('log').append(body)
const create = ({ hw }: Opened) => hw.basin('my-basin').createStream('other')
const read = ({ hw }: Opened) => hw.basin('my-basin').stream('log').readBatch({ seqNum: 0 })

describe.each([
  ['memory', async () => memory()],
  ['IndexedDB', async () => indexedDb(`certainty-${databases++}`)],
  ['filesystem', async () => filesystem(await temporaryDirectory())],
] as const)('%s', (_, storageOf) => {
  test('a call after the storage was closed had no effect', async () => {
    const opened = await openEngine(await storageOf())
    await opened.session.close()
    for (const call of [append, create, read]) {
      expect(await failureOf(call(opened))).toEqual(['closed', false])
    }
  })
})

describe('filesystem', () => {
  async function openOn(disk: SimulatedDisk): Promise<Opened> {
    const { manifest } = filesystem('simulated')
    return openEngine({ manifest, open: () => openSimulated(disk, 10_000_000) })
  }

  test.each<[string, string, Parameters<Faults>[0][], string, boolean]>([
    ['a write that fails', 'EIO', ['write'], 'storage', false],
    ['a full disk', 'ENOSPC', ['write'], 'storage_full', false],
    ['a quota that is used up', 'EDQUOT', ['write'], 'storage_full', false],
    ['a sync that fails', 'EIO', ['datasync'], 'storage', true],
    ['a write that cannot be undone', 'ENOSPC', ['write', 'datasync'], 'storage_full', true],
  ])(
    '%s: failed appends and commits state correctly whether anything was written',
    async (_, code, operations, expected, mayHaveEffects) => {
      for (const call of [append, create]) {
        const disk = new SimulatedDisk(new Prng(1))
        const opened = await openOn(disk)
        const broken = new Set(operations)
        disk.faults = (operation) => {
          if (!broken.has(operation)) return undefined
          if (operations.length === 1) broken.delete(operation)
          return code
        }
        expect(await failureOf(call(opened))).toEqual([expected, mayHaveEffects])
        disk.faults = () => undefined
      }
    },
  )

  test('a damaged record that is read, and a directory that is damaged or open elsewhere', async () => {
    const directory = await temporaryDirectory()
    const opened = await openEngine(filesystem(directory))
    const [journal] = (await readdir(directory)).filter((name) => name.startsWith('journal'))
    await writeFile(join(directory, journal!), Buffer.alloc(10_000))
    expect(await failureOf(read(opened))).toEqual(['storage', false])
    await opened.hw.close()
    await appendFile(join(directory, 'checkpoint-0000000009'), 'damaged')
    expect(await failureOf(open({ storage: filesystem(directory) }))).toEqual(['storage', false])
    const other = await temporaryDirectory()
    const locked = await lockDirectory(other)
    expect(await failureOf(open({ storage: filesystem(other) }))).toEqual(['storage', false])
    await locked.release()
  })
})

describe('IndexedDB', () => {
  test.each<[string, readonly Fault[], boolean]>([
    // Browsers report some lost answers as aborts.
    ['transactions that are aborted', ['abort', 'abort', 'abort'], true],
    ['connections that are lost', ['close', 'close', 'close'], false],
    ['a connection and then an answer that are lost', ['close', 'lose-answer'], true],
  ])('%s: failed appends state correctly whether anything was written', async (_, faults, mayHaveEffects) => {
    const opened = await openEngine(indexedDb(`certainty-${databases++}`))
    injectFaults(faults)
    expect(await failureOf(append(opened))).toEqual(['storage', mayHaveEffects])
  })

  test('a read that fails had no effect', async () => {
    const opened = await openEngine(indexedDb(`certainty-${databases++}`))
    injectFaults(['close', 'close'], 'readonly')
    expect(await failureOf(read(opened))).toEqual(['storage', false])
  })

  test('a full database: appends and commits had no effect', async () => {
    const opened = await openEngine(indexedDb(`certainty-${databases++}`))
    limitSpace(0)
    expect(await failureOf(append(opened, 'x'.repeat(100_000)))).toEqual(['storage_full', false])
    expect(await failureOf(create(opened))).toEqual(['storage_full', false])
  })
})
