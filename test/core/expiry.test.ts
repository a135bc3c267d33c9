import { describe, expect, it } from 'vitest'
import { decideExpiry, isReadRecorded, streamExpiresAt } from '../../src/core/lifetime.ts'

const USE = { createdAt: 1_000, appendedAt: 1_000 }

describe('the expiry of a stream', () => {
  it('is the given time, however the stream is used', () => {
    expect(streamExpiresAt({ at: 5_000 }, { ...USE, appendedAt: 4_999, readAt: 4_999 })).toBe(5_000)
    expect(isReadRecorded({ at: 5_000 }, USE, 1_000_000)).toBe(false)
  })

  it('follows the last append or recorded read by the idle time and one step of recording', () => {
    const idle = { idleSeconds: 10 }
    expect(streamExpiresAt(idle, USE)).toBe(12_000)
    expect(streamExpiresAt(idle, { ...USE, appendedAt: 3_000 })).toBe(14_000)
    expect(streamExpiresAt(idle, { ...USE, appendedAt: 3_000, readAt: 4_000 })).toBe(15_000)
  })

  it('records a read when a tenth of the idle time has passed, and at the latest after a minute', () => {
    expect(isReadRecorded({ idleSeconds: 10 }, USE, 1_999)).toBe(false)
    expect(isReadRecorded({ idleSeconds: 10 }, USE, 2_000)).toBe(true)
    expect(isReadRecorded({ idleSeconds: 10 }, { ...USE, readAt: 2_000 }, 2_999)).toBe(false)
    expect(isReadRecorded({ idleSeconds: 86_400 }, USE, 60_999)).toBe(false)
    expect(isReadRecorded({ idleSeconds: 86_400 }, USE, 61_000)).toBe(true)
  })

  it('never precedes the idle time after a read that was not recorded', { tags: ['slow'] }, () => {
    for (const idleSeconds of [1, 2, 10, 600, 86_400]) {
      for (let readAt = 1_000; readAt < 100_000; readAt += 37) {
        const known = isReadRecorded({ idleSeconds }, USE, readAt) ? { ...USE, readAt } : USE
        expect(streamExpiresAt({ idleSeconds }, known)).toBeGreaterThanOrEqual(readAt + idleSeconds * 1_000)
      }
    }
  })

  it('deletes at the time itself, and otherwise says when to look again', () => {
    expect(decideExpiry({ at: 5_000 }, USE, 5_000)).toBe('delete')
    expect(decideExpiry({ at: 5_000 }, USE, 4_999)).toEqual({ checkAt: 5_000 })
    expect(decideExpiry(undefined, USE, 5_000)).toBe(null)
  })
})
