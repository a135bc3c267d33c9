import { describe, expect, it, vi } from 'vitest'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { run, testStorages } from './run.ts'

const [FROM, TO] = ['postgres://from/db', 'postgres://to/db']

async function using<Result>(storage: Storage, use: (hw: Engine) => Promise<Result>): Promise<Result> {
  const hw = await open({ storage })
  try {
    return await use(hw)
  } finally {
    await hw.close()
  }
}

/** The records, tail and fencing token of a stream. */
function contentsOf(storage: Storage) {
  return using(storage, async (hw) => {
    const stream = hw.basin('basin').stream('a')
    const tail = await stream.checkTail()
    const { records } = await stream.readBatch({ seqNum: 0, clamp: true })
    const config = await stream.config()
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
  it('follows until it is interrupted, and then copies the remaining records', {
    tags: ['slow'],
  }, async () => {
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
})
