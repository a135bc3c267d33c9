import { expect, onTestFinished, test, vi } from 'vitest'
import { fold } from '../../adapters/fold/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import { openBoth, until } from './mirrored.ts'

/** A device whose view has reached the end of a closed stream. */
async function openClosed() {
  const device = await openBoth()
  const { origin, startSynced, clock } = device
  await origin.append('a')
  await origin.close()
  const synced = startSynced()
  const shown: string[] = []
  const ends: unknown[] = []
  synced.view$.subscribe({
    next: (view) => shown.push(Array.from(view, ({ body, isPending }) => `${body}${isPending}`).join(' ')),
    error: (error) => ends.push(error),
    complete: () => ends.push('complete'),
  })
  await until(synced.mirror, 'live', clock)
  await clock.settle()
  return { ...device, synced, ends, shown: () => shown.at(-1) }
}

test('a view and a fold of a closed stream show what cannot be sent any more', async () => {
  const { synced, clock, shown, ends } = await openClosed()
  const bodies = fold(synced, { initial: '', reduce: (text, { body }) => text + body, version: 1 })
  onTestFinished(() => bodies.close())
  expect(await bodies.loaded()).toBe('a')
  expect(shown()).toBe('afalse')
  const { number } = await synced.append('mine')
  await clock.advance('1m')
  expect(synced.outbox.failed).toMatchObject([{ error: { code: 'stream_closed' } }])
  expect(shown()).toBe('afalse minetrue')
  expect(bodies.value).toBe('amine')
  await synced.outbox.discard(number)
  await clock.settle()
  expect(shown()).toBe('afalse')
  expect(bodies.value).toBe('a')
  expect(ends).toEqual([])
})

test('a view of a closed stream shows the copy that replaces it', async () => {
  const { synced, origin, clock, shown } = await openClosed()
  await synced.append('mine')
  await clock.advance('1m')
  await origin.delete()
  await origin.append(['x', 'y', 'z'])
  await synced.mirror.restart()
  await clock.advance('1m')
  expect(shown()).toBe('xfalse yfalse zfalse minetrue')
})

test.each(['synced', 'hw'] as const)('a view of a closed stream completes when %s closes', async (by) => {
  const { clock, ends, ...closable } = await openClosed()
  expect(ends).toEqual([])
  await closable[by].close()
  await clock.settle()
  expect(ends).toEqual(['complete'])
})

test('a view of a closed stream goes on if its copy cannot be looked up for a while', async () => {
  const { synced, local, clock, shown, ends } = await openClosed()
  const changed: number[] = []
  synced.view$.subscribe(({ change }) => changed.push(change.index))
  await clock.settle()
  const before = changed.length
  const identity = vi.spyOn(local, 'identity')
  identity.mockRejectedValue(new HeadwaterError('storage', 'unavailable for a while'))
  await synced.append('mine')
  await clock.settle()
  expect(identity).toHaveBeenCalled()
  // The record is added, then parked.
  expect(changed.slice(before)).toEqual([1, 1])
  expect(shown()).toBe('afalse minetrue')
  expect(ends).toEqual([])
})

test.each([1, 2])('a bound of %s of 2 records ends a view of a closed stream', async (count) => {
  const { synced, clock } = await openClosed()
  const ends: string[] = []
  synced.view({ count }).subscribe({ complete: () => ends.push('complete') })
  await clock.settle()
  expect(ends).toEqual(['complete'])
})

test.each(['synced stream', 'engine'] as const)(
  'views and folds of a synced stream complete when the %s is closed',
  async (closed) => {
    const { hw, startSynced, clock } = await openBoth()
    const synced = startSynced()
    await synced.append('x')
    await clock.settle()
    const ends: string[] = []
    const watch = (name: string) => ({
      complete: () => ends.push(name),
      error: (error: unknown) => ends.push(String(error)),
    })
    const count = fold(synced, { initial: 0, reduce: (sum) => sum + 1, version: 1 })
    synced.view$.subscribe(watch('view'))
    count.value$.subscribe(watch('fold'))
    await count.loaded()
    await (closed === 'engine' ? hw : synced).close()
    await clock.settle()
    expect(ends.sort()).toEqual(['fold', 'view'])
    expect(count.value).toBe(1)
  },
)
