import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { run, testStorages } from './run.ts'

const [FROM, TO] = ['postgres://from/db', 'postgres://to/db']

let pglite: PGlite
beforeAll(async () => {
  pglite = await PGlite.create()
})
afterAll(() => pglite.close())

async function using<Result>(storage: Storage, use: (hw: Engine) => Promise<Result>): Promise<Result> {
  const hw = await open({ storage })
  try {
    return await use(hw)
  } finally {
    await hw.close()
  }
}

/** The records, tail and fencing token of a stream. */
function contentsOf(storage: Storage, name = 'a') {
  return using(storage, async (hw) => {
    const stream = hw.basin('basin').stream(name)
    const tail = await stream.checkTail()
    const { records } = await stream.readBatch({ seqNum: 0, clamp: true })
    const config = await hw.basin('basin').stream(name).config()
    return { tail, records, config }
  })
}

const copy = (storages: Map<string, Storage>, ...options: string[]) =>
  run(['copy', FROM, TO, ...options], { storages: testStorages({ directories: storages }) })

async function fill(storage: Storage, bodies: readonly string[]): Promise<void> {
  await using(storage, async (hw) => {
    await hw.ensureBasin('basin')
    await hw.basin('basin').ensureStream('a', { retentionPolicy: 'infinite' })
    for (const body of bodies)
      await hw
        .basin('basin')
        .stream('a')
        .append({ body, headers: [['n', body]] })
  })
}

describe('headwater copy', () => {
  it('copies to PostgreSQL with positions, timestamps and configuration', async () => {
    const [from, to] = [testStorage(), postgres({ client: pglite })]
    await fill(from, ['x', 'y', 'z'])
    const { exitCode, err } = copy(
      new Map([
        [FROM, from],
        [TO, to],
      ]),
    )
    expect(await exitCode).toBe(0)
    expect(err).toEqual(['Copied 1 basin, 1 stream, 3 records'])
    expect(await contentsOf(to)).toEqual(await contentsOf(from))
  })

  it('continues with `--resume`, and transfers only new records', async () => {
    const storages = new Map([
      [FROM, testStorage()],
      [TO, testStorage()],
    ] as const)
    await fill(storages.get(FROM)!, ['x', 'y'])
    expect(await copy(storages).exitCode).toBe(0)
    await fill(storages.get(FROM)!, ['z'])
    const refused = copy(storages)
    expect(await refused.exitCode).toBe(1)
    expect(refused.err.join()).toContain('already has records; continue it with `--resume`')
    const { exitCode, err } = copy(storages, '--resume')
    expect(await exitCode).toBe(0)
    expect(err).toEqual(['Copied 1 basin, 1 stream, 1 record'])
    expect(await contentsOf(storages.get(TO)!)).toEqual(await contentsOf(storages.get(FROM)!))
  })

  it('rejects a target with other records', async () => {
    const storages = new Map([
      [FROM, testStorage()],
      [TO, testStorage()],
    ] as const)
    await fill(storages.get(FROM)!, ['x', 'y'])
    await fill(storages.get(TO)!, ['other', 'records', 'here'])
    const { exitCode, err } = copy(storages, '--resume')
    expect(await exitCode).toBe(1)
    expect(err.join()).toContain('already ends at 3, after the exported tail 2')
  })

  it('follows until it is interrupted, and then copies the remaining records', async () => {
    const storages = new Map([
      [FROM, testStorage()],
      [TO, testStorage()],
    ] as const)
    await fill(storages.get(FROM)!, ['x'])
    const { exitCode, err, signals } = copy(storages, '--follow')
    const caughtUp = 'Everything is copied; following until Ctrl+C'
    await vi.waitFor(() => expect(err).toEqual([caughtUp]))
    await fill(storages.get(FROM)!, ['y', 'z'])
    signals.emit('SIGINT')
    expect(await exitCode).toBe(0)
    expect(err).toEqual([caughtUp, 'Copied 1 basin, 1 stream, 3 records'])
    expect(await contentsOf(storages.get(TO)!)).toEqual(await contentsOf(storages.get(FROM)!))
  })

  it('does not quote a password', async () => {
    const { exitCode, err } = run(['copy', 'postgres://me:secret@here:port/db', './data'])
    expect(await exitCode).toBe(2)
    expect(err.join()).not.toContain('secret')
  })

  it('rejects the same source and target', async () => {
    const { exitCode, err } = run(['copy', './data', './data'])
    expect(await exitCode).toBe(2)
    expect(err.join()).toContain('FROM and TO must not be the same')
  })
})
