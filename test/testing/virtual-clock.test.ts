import { describe, expect, test, vi } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'

describe('the virtual clock', () => {
  test('stands still until it is advanced', async () => {
    const clock = virtualClock({ now: 1000 })
    expect(clock.now()).toBe(1000)
    await clock.settle()
    expect(clock.now()).toBe(1000)
    await clock.advance(250)
    expect(clock.now()).toBe(1250)
  })

  test('starts at the same time in every run unless `now` is given', () => {
    expect(new Date(virtualClock().now()).toISOString()).toBe('2025-01-01T00:00:00.000Z')
    expect(virtualClock({ now: new Date(5) }).now()).toBe(5)
  })

  test.each([
    ['500ms', 500],
    ['60s', 60_000],
    ['1.5s', 1500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['0s', 0],
    [42, 42],
  ])('advances by %s', async (duration, ms) => {
    const clock = virtualClock({ now: 0 })
    await clock.advance(duration)
    expect(clock.now()).toBe(ms)
  })

  test.each(['', '5', 's', '-1s', '1 s', '1w', '1s2', -1, Number.NaN, Number.POSITIVE_INFINITY])(
    'rejects an advance by %s',
    async (duration) => {
      const clock = virtualClock({ now: 0 })
      await expect(clock.advance(duration)).rejects.toThrow(expect.objectContaining({ code: 'invalid' }))
      expect(clock.now()).toBe(0)
    },
  )

  test('fires due timers in the order of their times, then of their creation', async () => {
    const clock = virtualClock({ now: 0 })
    const fired: string[] = []
    const note = (name: string) => () => void fired.push(`${name}@${clock.now()}`)
    clock.schedule(30, note('late'))
    clock.schedule(10, note('a'))
    clock.schedule(20, note('b'))
    clock.schedule(10, note('c'))
    clock.schedule(-5, note('now'))
    clock.schedule(31, note('too late'))
    expect(fired).toEqual([])
    await clock.advance(30)
    expect(fired).toEqual(['now@0', 'a@10', 'c@10', 'b@20', 'late@30'])
    expect(clock.pending).toBe(1)
  })

  test('fires timers that woken code schedules within the span', async () => {
    const clock = virtualClock({ now: 0 })
    const wait = (ms: number) => new Promise<void>((resolve) => void clock.schedule(ms, resolve))
    const times: number[] = []
    const loop = async () => {
      for (;;) {
        await wait(15)
        await new Promise((resolve) => setImmediate(resolve))
        times.push(clock.now())
      }
    }
    void loop()
    await clock.advance(50)
    expect(times).toEqual([15, 30, 45])
    await clock.advance(10)
    expect(times).toEqual([15, 30, 45, 60])
  })

  test('does not fire a cancelled timer, and ignores late or repeated cancellations', async () => {
    const clock = virtualClock()
    const fired = vi.fn()
    const cancel = clock.schedule(10, fired)
    expect(clock.pending).toBe(1)
    cancel()
    cancel()
    expect(clock.pending).toBe(0)
    await clock.advance(100)
    expect(fired).not.toHaveBeenCalled()
    const cancelLate = clock.schedule(10, fired)
    clock.schedule(1000, fired)
    await clock.advance(10)
    cancelLate()
    expect(fired).toHaveBeenCalledTimes(1)
    expect(clock.pending).toBe(1)
  })

  test('lets a callback cancel another due timer', async () => {
    const clock = virtualClock()
    const fired = vi.fn()
    clock.schedule(10, () => cancel())
    const cancel = clock.schedule(10, fired)
    await clock.advance(10)
    expect(fired).not.toHaveBeenCalled()
  })

  test('ends an advance at a callback that throws, and can be advanced again', async () => {
    const clock = virtualClock({ now: 0 })
    clock.schedule(5, () => {
      throw new Error('broken')
    })
    const fired = vi.fn()
    clock.schedule(6, fired)
    await expect(clock.advance(10)).rejects.toThrow('broken')
    expect(clock.now()).toBe(5)
    await clock.advance(10)
    expect(fired).toHaveBeenCalledTimes(1)
    expect(clock.now()).toBe(15)
  })

  test('rejects if timers re-arm without delay forever', { tags: ['slow'] }, async () => {
    const clock = virtualClock({ now: 0 })
    const rearm = (): void => void clock.schedule(0, rearm)
    rearm()
    await expect(clock.advance(1)).rejects.toThrow('without delay')
  })

  test.each([Number.NaN, new Date('never'), Number.POSITIVE_INFINITY])('rejects a start at %s', (now) => {
    expect(() => virtualClock({ now })).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  test('keeps a timer armed that is never due', async () => {
    const clock = virtualClock()
    clock.schedule(Number.POSITIVE_INFINITY, () => {})
    await clock.advance('365d')
    expect(clock.pending).toBe(1)
    expect(() => clock.schedule(Number.NaN, () => {})).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})
