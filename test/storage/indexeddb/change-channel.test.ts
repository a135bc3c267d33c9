import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open, systemClock } from '../../../src/index.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A browser whose channels fail. */
function breakChannels() {
  const tried = { posts: 0 }
  class BrokenChannel {
    postMessage(): void {
      tried.posts++
      throw new DOMException('the channel is closed', 'InvalidStateError')
    }
    close(): void {}
  }
  vi.stubGlobal('BroadcastChannel', BrokenChannel)
  return tried
}

async function openSession(name: string) {
  const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
  onTestFinished(() => session.close())
  return session
}

describe('a broken BroadcastChannel', () => {
  it('does not affect commits and appends, to one log or several', async () => {
    const tried = breakChannels()
    const session = await openSession('broken')
    const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    await Promise.all(writers.map((writer) => writer.append()))
    await Promise.all(writers.map((writer) => writer.append()))
    expect(tried.posts).toBeGreaterThan(0)
  })
})

describe('without BroadcastChannel', () => {
  it('the manifest declares no notifications; with it, it declares hints', () => {
    expect(indexedDb('a').manifest.notifications).toBe('hint')
    vi.stubGlobal('BroadcastChannel', undefined)
    expect(indexedDb('a').manifest.notifications).toBe('none')
  })

  it('a follower polls every second for appends by other engines', async () => {
    vi.stubGlobal('BroadcastChannel', undefined)
    const clock = virtualClock()
    const author = await open({ storage: indexedDb('polled') })
    const follower = await open({ storage: indexedDb('polled'), clock })
    onTestFinished(async () => {
      await Promise.all([author.close(), follower.close()])
    })
    const stream = author.basin('basin').stream('stream')
    await stream.append('a')
    const followed = follower.basin('basin').stream('stream').follow({ seqNum: 0 }).records$
    const bodies: string[] = []
    const subscription = followed.subscribe(({ body }) => bodies.push(body))
    onTestFinished(() => subscription.unsubscribe())
    await expect.poll(() => bodies).toEqual(['a'])
    await stream.append('b')
    await clock.advance('1s')
    await expect.poll(() => bodies).toEqual(['a', 'b'])
  })
})
