import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { streamKey } from '../../../src/storage/documents.ts'
import { testClock, wrapped } from '../../support/index.ts'

it('appends follow a new configuration while followers are told of records before it', async () => {
  const data = memory()
  const clock = testClock({ now: 1_000_000 })
  const raw = await data.open({ clock, onLogChanged: () => {} })
  let isHolding = false
  const waiting: (() => void)[] = []
  const storage = wrapped(data, {}, (session: StorageSession) => ({
    async head(logId) {
      if (isHolding) await new Promise<void>((go) => waiting.push(go))
      return session.head(logId)
    },
  }))
  const [other, hw] = [await open({ storage: data, clock }), await open({ storage, clock })]
  await other.ensureBasin('basin')
  await other.basin('basin').ensureStream('s', { retentionPolicy: 'infinite' })
  const stream = hw.basin('basin').stream('s')
  const seen: string[] = []
  const following = stream.readSession({ seqNum: 0 }).records$.subscribe(({ body }) => seen.push(body))
  await stream.append('a')
  await clock.settle()

  // It finds the head with the new record, and is held before it has read the new configuration.
  isHolding = true
  await other.basin('basin').reconfigureStream('s', { retentionPolicy: { ageSeconds: 60 } })
  await other.basin('basin').stream('s').append('b')
  await clock.settle()
  waiting.shift()!()
  await clock.settle()
  expect(waiting.length).toBe(1)
  const appended = stream.append('c')
  await clock.settle()
  isHolding = false
  for (const go of waiting) go()
  await appended
  await clock.settle()

  const document = await raw.get('streams', streamKey('basin', 's'))
  const { logId } = document!.value as { readonly logId: string }
  const range = { from: { seqNum: 0 }, endSeqNum: 3, bytesMax: 10_000 }
  const expiries = (await raw.read(logId, range)).map(({ expiresAt }) => expiresAt)
  expect(expiries).toEqual([null, 1_060_000, 1_060_000])
  expect(seen).toEqual(['a', 'b', 'c'])
  following.unsubscribe()
  await Promise.all([hw.close(), other.close(), raw.close()])
})
