import { describe, expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage, type StorageFault, type StorageRates } from '../../adapters/testing/index.ts'
import { openFaulty, outcome } from './storage-support.ts'

const RATES: StorageRates = {
  get: { before: 0.2, after: 0.2 },
  head: { before: 0.5, kind: 'quota', delay: [0, 3] },
}

/** The faults of a seed in 50 calls of each operation. */
async function faultsOf(
  seed: number,
  order: 'one by one' | 'other operations first' = 'one by one',
): Promise<readonly StorageFault[]> {
  const { storage, session, clock } = await openFaulty({ seed, rates: RATES })
  const calls = { get: () => session.get('streams', 'a'), head: () => session.head('log') }
  const make = async (operation: keyof typeof calls) => {
    const settled = outcome(calls[operation]())
    await clock.advance(5)
    await settled
  }
  for (let i = 0; i < 50; i++) {
    if (order === 'one by one') await make('get')
    await make('head')
  }
  for (let i = 0; i < 50; i++) if (order === 'other operations first') await make('get')
  return storage.log
}

const failuresOf = (faults: readonly StorageFault[], wanted: string) =>
  faults.filter((fault) => 'operation' in fault && fault.operation === wanted)

describe('random faults', () => {
  test('are the same for the same seed and differ for another', async () => {
    const [first, repeated, other] = [await faultsOf(7), await faultsOf(7), await faultsOf(8)]
    expect(first).toEqual(repeated)
    expect(first).not.toEqual(other)
  })

  test('do not depend on calls of other operations', async () => {
    const [alone, mixed] = [await faultsOf(7), await faultsOf(7, 'other operations first')]
    expect(failuresOf(mixed, 'get')).toEqual(failuresOf(alone, 'get'))
    expect(failuresOf(mixed, 'head')).toEqual(failuresOf(alone, 'head'))
  })

  test('can be repeated, call by call, from the log', async () => {
    const faults = (await faultsOf(7)).filter((fault) => fault.fault === 'failure')
    const { storage, session } = await openFaulty()
    for (const { operation, call, kind, after } of faults) {
      // The log counts calls from the first one.
      if (operation === 'get') storage.fail('get', { nth: call, kind, after })
    }
    for (let i = 0; i < 50; i++) await outcome(session.get('streams', 'a'))
    expect(storage.log).toEqual(failuresOf(faults, 'get'))
    expect(storage.log.length).toBeGreaterThan(5)
  })

  test('begin and end when `rates` is set', async () => {
    const { storage, session } = await openFaulty()
    storage.rates = { head: { before: 1 } }
    expect(await outcome(session.head('log'))).toBe('io')
    storage.rates = { head: { after: 1, kind: 'corrupt' } }
    expect(await outcome(session.head('log'))).toBe('corrupt')
    storage.heal()
    expect(storage.rates).toEqual({})
    expect(await outcome(session.head('log'))).toBe('done')
  })
})

test.each<[StorageRates, string]>([
  [{ append: { before: 1.1 } }, 'rates.append.before'],
  [{ append: { after: -0.1 } }, 'rates.append.after'],
  [{ append: { before: 0.6, after: 0.6 } }, 'rates.append'],
  [{ read: { torn: 2 } }, 'rates.read.torn'],
  [{ notification: { drop: Number.NaN } }, 'rates.notification.drop'],
  [{ get: { delay: [5, 1] } }, 'rates.get.delay'],
  [{ get: { delay: ['soon', 1] } }, 'soon'],
  [{ apend: { before: 1 } } as StorageRates, 'apend'],
  [{ append: { torn: 1 } } as StorageRates, 'torn'],
  [{ notification: { before: 1 } } as StorageRates, 'before'],
])('rejects %j: %s', (rates, named) => {
  const error = expect.objectContaining({ code: 'invalid', message: expect.stringContaining(named) })
  expect(() => faultyStorage(memory(), { rates })).toThrow(error)
})
