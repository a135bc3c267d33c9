import { describe, expect, it, onTestFinished } from 'vitest'
import { LogStorage } from '../../../adapters/storage/log/storage.ts'
import { BucketMedium } from '../../../adapters/storage/s3/bucket-medium.ts'
import { RangeCache } from '../../../adapters/storage/s3/range-cache.ts'
import { S3Bucket } from '../../../adapters/storage/s3/s3-bucket.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { type Headwater, open } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { deferred } from '../../support/deferred.ts'
import { FakeS3 } from './fake-s3.ts'

async function opened(storage: Storage): Promise<Headwater> {
  const hw = await open({ storage, onBackgroundError: () => {} })
  onTestFinished(() => hw.close().catch(() => {}))
  return hw
}

const notes = (hw: Headwater) => hw.basin('my-app').stream('notes')
const bodies = async (hw: Headwater) => (await notes(hw).read().toArray()).map(({ body }) => body)

describe('an append whose request', () => {
  it.each(['lose request', 'lose response', 'slow down'] as const)(
    'suffers a %s is stored once',
    async (fault) => {
      const s3 = new FakeS3()
      const hw = await opened(s3.storage())
      await notes(hw).append('first')
      let faults = 3
      s3.faultOf = (method, key) => {
        if (faults === 0 || method !== 'PUT' || !key.startsWith('chain/')) return undefined
        faults--
        return fault
      }
      await notes(hw).append('second')
      expect(faults).toBe(0)
      await hw.close()
      expect(await bodies(await opened(s3.storage()))).toEqual(['first', 'second'])
    },
  )
})

describe('of two processes', () => {
  it('an opening fails with an error that names the process with the bucket', async () => {
    const s3 = new FakeS3()
    await opened(s3.storage())
    await expect(open({ storage: s3.storage() })).rejects.toThrow(`process ${process.pid} on`)
  })

  it('the second opens it if the first one is gone for half a minute', async () => {
    const s3 = new FakeS3()
    const hw = await opened(s3.storage())
    await notes(hw).append('first')
    s3.now = () => Date.now() + 31_000
    expect(await bodies(await opened(s3.storage()))).toEqual(['first'])
  })

  it('the one that takes over ends the writing of the other, which acknowledges nothing more', async () => {
    const s3 = new FakeS3()
    const first = await opened(s3.storage())
    await notes(first).append('first')
    const second = await opened(s3.storage({ takeOver: true }))
    const late = notes(first).append('late')
    await expect(late).rejects.toMatchObject({ code: 'storage', mayHaveEffects: false })
    await notes(second).append('second')
    await expect(notes(first).append('later')).rejects.toMatchObject({ code: 'storage' })
    expect(await bodies(second)).toEqual(['first', 'second'])
  })

  it('the second takes over from one that never pauses', { tags: ['slow'] }, async () => {
    const s3 = new FakeS3()
    const first = await opened(s3.storage())
    const acked: string[] = []
    const writing = (async () => {
      for (let i = 0; ; i++) {
        await notes(first).append(`${i}`)
        acked.push(`${i}`)
      }
    })().catch(() => {})
    const second = await opened(s3.storage({ takeOver: true }))
    await writing
    await notes(second).append('second')
    expect(await bodies(second)).toEqual([...acked, 'second'])
  })

  it('none writes behind two others that opened the bucket at the same time', async () => {
    const s3 = new FakeS3()
    const writer = await opened(rolling(s3))
    await notes(writer).append('first')
    let second: Headwater | undefined
    let pieces = 0
    s3.faultOf = async (method, key) => {
      if (method === 'PUT' && key.startsWith('chain/')) pieces++
      // The first opening has added its piece, and looks whether it is the last one.
      if (pieces !== 1 || method !== 'GET' || key !== '') return undefined
      pieces++
      second = await opened(rolling(s3))
      return undefined
    }
    const third = await opened(rolling(s3))
    s3.faultOf = () => undefined
    await expect(notes(writer).append('late')).rejects.toMatchObject({ code: 'storage' })
    await expect(notes(second!).append('late')).rejects.toMatchObject({ code: 'storage' })
    await notes(third).append('third')
    expect(await bodies(third)).toEqual(['first', 'third'])
  })

  it('the first one removes nothing that the other uses, wherever its roll was when it lost the bucket', async () => {
    for (const step of ['PUT segment-', 'PUT checkpoint-', 'PUT chain/', 'DELETE chain/']) {
      const s3 = new FakeS3()
      const [reached, released] = [deferred<void>(), deferred<void>()]
      const first = await opened(rolling(s3))
      await notes(first).append('1'.repeat(500))
      s3.faultOf = async (method, key) => {
        if (!s3.requests.some((request) => request.startsWith('PUT segment-'))) return undefined
        if (!`${method} ${key}`.startsWith(step)) return undefined
        reached.resolve()
        await released.promise
        return undefined
      }
      const waiting = notes(first)
        .append('2'.repeat(5_000))
        .catch(() => {})
      await reached.promise
      s3.faultOf = () => undefined
      const second = await opened(rolling(s3))
      const before = await bodies(second)
      await notes(second).append('3'.repeat(5_000))
      released.resolve()
      await waiting
      await notes(first)
        .append('too late')
        .catch(() => {})
      await first.close().catch(() => {})
      await notes(second).append('4'.repeat(5_000))
      const all = [...before, '3'.repeat(5_000), '4'.repeat(5_000)]
      expect(await bodies(second), step).toEqual(all)
      await second.close()
      expect(await bodies(await opened(rolling(s3))), step).toEqual(all)
      // What the first one could not confirm is removed.
      const checkpoints = [...s3.objects.keys()].filter((key) => key.startsWith('checkpoint-'))
      expect(checkpoints.length, step).toBeLessThanOrEqual(1)
    }
  })
})

/** Rolls its journals every 2,000 bytes, and opens without an owner. */
function rolling(s3: FakeS3): Storage {
  return {
    manifest: s3.storage().manifest,
    open: async (context) => {
      const location = {
        bucket: 'data',
        prefix: '',
        endpoint: 'http://s3',
        region: 'us-east-1',
        credentials: async () => ({ accessKeyId: 'key', secretAccessKey: 'secret' }),
        fetch: s3.fetch,
      }
      const medium = await BucketMedium.open(new S3Bucket(location), new RangeCache(1_000_000))
      const { firstSegment } = medium
      const options = {
        durability: 'power-loss',
        rollBytes: 2_000,
        firstSegment,
        clock: systemClock,
      } as const
      return (await LogStorage.open(medium, options, async () => {})).join(context)!
    },
  }
}

it('a bucket that ignores conditions is refused', async () => {
  const s3 = new FakeS3()
  s3.isConditional = false
  await expect(open({ storage: s3.storage() })).rejects.toThrow('conditional writes')
})

it('a clock that is off by an hour is corrected by that of the bucket', async () => {
  const s3 = new FakeS3()
  s3.now = () => Date.now() + 3_600_000
  await notes(await opened(s3.storage())).append('first')
  expect([...s3.objects.keys()]).toContain('chain/000000000002')
})

it('credentials that have expired are asked for again', async () => {
  const s3 = new FakeS3()
  const keys = ['old', 'new']
  const credentials = async () => ({ accessKeyId: keys.shift()!, secretAccessKey: 'secret' })
  const hw = await opened(s3.storage({ credentials }))
  await notes(hw).append('first')
  s3.expiredKey = 'old'
  await notes(hw).append('second')
  expect(await bodies(hw)).toEqual(['first', 'second'])
  expect(keys).toEqual([])
})

it.each([
  ['an unknown option', { bukcet: 'x' }, 'bukcet'],
  ['a name that is none', { bucket: 'Not A Bucket' }, 'bucket'],
  ['a size that is none', { bucket: 'data', cacheBytes: -1 }, 'cacheBytes'],
])('%s is refused', (_, options, field) => {
  expect(() => new FakeS3().storage(options as never)).toThrow(
    expect.objectContaining({ code: 'invalid', field }),
  )
})

it('with `flushMs`, appends that arrive meanwhile share a request', async () => {
  const s3 = new FakeS3()
  const clock = virtualClock()
  const passing = async <Result>(work: Promise<Result>): Promise<Result> => {
    let isDone = false
    const end = () => {
      isDone = true
    }
    work.then(end, end)
    while (!isDone) await clock.advance('100ms')
    return work
  }
  const hw = await passing(open({ storage: s3.storage({ flushMs: 1_000 }), clock }))
  await passing(notes(hw).append('first'))
  const puts = () => s3.requests.filter((request) => request.startsWith('PUT chain/')).length
  const before = puts()
  const startedAt = clock.now()
  const appended = [notes(hw).append('second')]
  for (const text of ['third', 'fourth']) {
    await clock.advance('100ms')
    appended.push(notes(hw).append(text))
  }
  await passing(Promise.all(appended))
  expect(puts() - before).toBe(1)
  expect(clock.now() - startedAt).toBeLessThanOrEqual(1_200)
  expect(await passing(bodies(hw))).toEqual(['first', 'second', 'third', 'fourth'])
  await passing(hw.close())
})

it('many small groups are rolled into larger objects, which a reopened storage reads', {
  tags: ['slow'],
}, async () => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  for (let i = 0; i < 1_100; i++) await notes(hw).append(`${i}`)
  await hw.close()
  const keys = [...s3.objects.keys()]
  expect(keys.filter((key) => key.startsWith('segment-'))).toHaveLength(1)
  expect(keys.filter((key) => key.startsWith('chain/')).length).toBeLessThan(1_000)
  const texts = await bodies(await opened(s3.storage()))
  expect(texts).toEqual(Array.from({ length: 1_100 }, (_, i) => `${i}`))
})
