import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import { testClock } from '../../support/index.ts'

const CONTROL = '../../../src/engine/service/control.ts'

/** An engine on what `prepare` left in the storage, which cannot load the code of the control plane. */
async function openOffline(prepare: (hw: Engine) => Promise<unknown>, clock = testClock()) {
  const storage = memory()
  const before = await open({ storage, clock })
  await before.createBasin('basin')
  await prepare(before)
  await before.close()
  vi.doMock(CONTROL, () => {
    throw new TypeError('Failed to fetch dynamically imported module')
  })
  const errors: unknown[] = []
  const hw = await open({ storage, clock, onBackgroundError: (error) => errors.push(error) })
  onTestFinished(async () => {
    // Waits for the code that it is loading.
    await hw.close()
    vi.doUnmock(CONTROL)
  })
  return { hw, stream: hw.basin('basin').stream('s'), clock, errors }
}

const createIdle = (hw: Engine) => hw.basin('basin').createStream('s', {}, { expiry: { idleSeconds: 100 } })

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error) => error,
  )

describe('without the code of the control plane', () => {
  it.each(['idleSeconds', 'at'] as const)('a stream whose expiry (%s) is not due is used', async (kind) => {
    const { stream, clock, errors } = await openOffline(async (hw) => {
      const expiry = kind === 'at' ? { at: new Date(hw.now() + 100_000) } : { idleSeconds: 100 }
      await hw.basin('basin').createStream('s', {}, { expiry })
    })
    await clock.advance(9_000)
    await stream.append('a')
    expect(await stream.read().toArray()).toHaveLength(1)
    expect((await stream.checkTail()).seqNum).toBe(1)
    expect(errors).toEqual([])
  })

  it('a stream is kept by its last append, which its document does not know of', async () => {
    const clock = testClock()
    const { stream } = await openOffline(async (hw) => {
      await createIdle(hw)
      await clock.advance(90_000)
      await hw.basin('basin').stream('s').append('a')
      await clock.advance(90_000)
    }, clock)
    expect(await stream.read().toArray()).toHaveLength(1)
  })

  it('a stream that has expired and a reserved name reject, until the code can be loaded', async () => {
    const { hw, stream, clock } = await openOffline(async (hw) => {
      const basin = hw.basin('basin')
      await createIdle(hw)
      await basin.stream('source').append('a')
      await basin.createStream('fork', {}, { fork: { stream: 'source' } })
      await basin.stream('source').delete()
    })
    await clock.advance(120_000)
    const reserved = hw.basin('basin').stream('source')
    for (const call of [() => stream.append('a'), () => reserved.append('a'), () => reserved.checkTail()]) {
      const error = await failureOf(call())
      expect(HeadwaterError.is(error) && error).toMatchObject({
        code: 'unavailable',
        retryable: true,
        mayHaveEffects: false,
      })
    }
    vi.doUnmock(CONTROL)
    expect((await stream.append('a')).start.seqNum).toBe(0)
    expect(await failureOf(reserved.append('a'))).toMatchObject({ code: 'stream_deletion_pending' })
  })
})
