import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Announcements } from '../../../adapters/storage/indexeddb/announcements.ts'
import { AppendWriter } from '../../../adapters/storage/indexeddb/append-writer.ts'
import { Connection } from '../../../adapters/storage/indexeddb/connection.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { loadRest } from '../../../adapters/storage/indexeddb/load-rest.ts'
import { Reserve } from '../../../adapters/storage/indexeddb/reserve.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open, systemClock } from '../../../src/index.ts'
import { LogWriter } from '../../../src/storage/conformance/log-writer.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A browser in which nobody can be told anything. */
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

describe('where others cannot be told', () => {
  it('commits and appends, of one log or several, are made all the same', async () => {
    const tried = breakChannels()
    const session = await openSession('untold')
    const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    await Promise.all(writers.map((writer) => writer.append()))
    await Promise.all(writers.map((writer) => writer.append()))
    expect(tried.posts).toBeGreaterThan(0)
  })

  it('a timer that tells later fails nobody either, and what could not be told is let go', async () => {
    const tried = breakChannels()
    const clock = virtualClock()
    const announcements = new Announcements('untold', clock, () => {})
    announcements.tell(['a'])
    announcements.tell(['b'])
    await clock.advance('1s')
    announcements.close()
    expect(tried.posts).toBe(2)
  })

  it('whoever asked for appends is told that they are durable, whatever the listener throws', async () => {
    const session = await openSession('listener')
    const connection = new Connection('listener', systemClock)
    onTestFinished(() => connection.close())
    const told: string[] = []
    const appender = new AppendWriter(connection, new Reserve(connection), 'strict', loadRest, (requests) => {
      told.push(requests[0]!.logId)
      throw new Error('no listener')
    })
    const writers = [await LogWriter.create(session, 'a'), await LogWriter.create(session, 'b')]
    for (let round = 0; round < 2; round++) {
      await Promise.all(writers.map((writer) => appender.append(writer.request())))
    }
    expect(told).toEqual(['a', 'b', 'a', 'b'])
  })
})

describe('without BroadcastChannel', () => {
  it('the manifest says that nobody is told; with it, that hints are given', () => {
    expect(indexedDb('a').manifest.notifications).toBe('hint')
    vi.stubGlobal('BroadcastChannel', undefined)
    expect(indexedDb('a').manifest.notifications).toBe('none')
  })

  it('a follower looks every second for what another engine appended', async () => {
    vi.stubGlobal('BroadcastChannel', undefined)
    const clock = virtualClock()
    const author = await open({ storage: indexedDb('polled') })
    const follower = await open({ storage: indexedDb('polled'), clock })
    onTestFinished(async () => {
      await Promise.all([author.close(), follower.close()])
    })
    const stream = author.basin('basin').stream('stream')
    await stream.append('a')
    const followed = follower.basin('basin').stream('stream').read({ seqNum: 0 }).text$
    const bodies: string[] = []
    const subscription = followed.subscribe(({ body }) => bodies.push(body))
    onTestFinished(() => subscription.unsubscribe())
    await expect.poll(() => bodies).toEqual(['a'])
    await stream.append('b')
    await clock.advance('1s')
    await expect.poll(() => bodies).toEqual(['a', 'b'])
  })
})
