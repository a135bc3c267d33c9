import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openBucket } from '../../../adapters/storage/s3/open-bucket.ts'
import { S3Bucket } from '../../../adapters/storage/s3/s3-bucket.ts'
import { type VirtualClock, virtualClock } from '../../../adapters/testing/index.ts'
import { type Headwater, open } from '../../../src/index.ts'
import type { Storage } from '../../../src/storage/contract.ts'
import { deferred } from '../../support/deferred.ts'
import { FakeS3, type Fault, locationOf } from './fake-s3.ts'

async function opened(storage: Storage): Promise<Headwater> {
  const hw = await open({ storage, onBackgroundError: () => {} })
  onTestFinished(() => hw.close().catch(() => {}))
  return hw
}

const notes = (hw: Headwater) => hw.basin('my-app').stream('notes')
const bodies = async (hw: Headwater) => (await notes(hw).read().toArray()).map(({ body }) => body)

describe('an append whose request', () => {
  it.each(['lose request', 'lose response', 'repeat', 'slow down'] as const)(
    'suffers a %s is stored once',
    async (fault) => {
      const s3 = new FakeS3()
      const hw = await opened(s3.storage())
      await notes(hw).append('first')
      let faults = fault === 'repeat' ? 1 : 3
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

it('an append whose first attempt may have been stored is not reported as refused', async () => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  await notes(hw).append('first')
  let attempts = 0
  s3.faultOf = (method, key) => {
    if (method !== 'PUT' || !key.startsWith('chain/')) return undefined
    return attempts++ === 0 ? 'lose response' : attempts < 4 ? 'refuse' : undefined
  }
  await notes(hw).append('second')
  expect(attempts).toBeGreaterThan(3)
  await hw.close()
  expect(await bodies(await opened(s3.storage()))).toEqual(['first', 'second'])
})

it('an append that may be the piece with its number is not reported as refused while none can be read', async () => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  let attempts = 0
  s3.faultOf = (method, key) => {
    if (!key.startsWith('chain/')) return undefined
    if (method === 'GET') return 'refuse'
    return attempts++ === 0 ? 'repeat' : undefined
  }
  const appended = notes(hw).append('first')
  await vi.waitFor(() => expect(attempts).toBeGreaterThan(1))
  s3.faultOf = () => undefined
  await appended
  expect(await bodies(hw)).toEqual(['first'])
})

it('an append that the bucket refuses has no effect, and the next one succeeds', async () => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  await notes(hw).append('first')
  s3.faultOf = () => 'refuse'
  await expect(notes(hw).append('refused')).rejects.toMatchObject({ mayHaveEffects: false })
  s3.faultOf = () => undefined
  await notes(hw).append('second')
  expect(await bodies(hw)).toEqual(['first', 'second'])
})

it.each([
  ['lose response', 'PUT owner'],
  ['lose response', 'PUT chain/'],
  ['cut response', 'GET chain/'],
  ['cut response', 'GET '],
  ['slow down', 'GET owner'],
] as const)('an opening survives a %s of %s', async (fault, step) => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  await notes(hw).append('first')
  await hw.close()
  let faults = 1
  s3.faultOf = (method, key) => {
    const isStep = step.endsWith(' ') ? `${method} ${key}` === step : `${method} ${key}`.startsWith(step)
    return isStep && faults-- > 0 ? fault : undefined
  }
  expect(await bodies(await opened(s3.storage()))).toEqual(['first'])
  expect(faults).toBeLessThanOrEqual(0)
})

it('requests that arrive a second time, after others, change nothing that counts', async () => {
  const s3 = new FakeS3()
  const all: string[] = []
  for (let opening = 0; opening < 4; opening++) {
    const hw = await opened(rolling(s3))
    for (let i = 0; i < 12; i++) {
      const text = `${opening} ${i} ${'x'.repeat(400)}`
      await notes(hw).append(text)
      all.push(text)
      if (i % 5 === opening) await s3.repeatChanges()
    }
    expect(await bodies(hw)).toEqual(all)
    await hw.close()
    await s3.repeatChanges()
  }
  expect(await bodies(await opened(rolling(s3)))).toEqual(all)
})

it.each(['PUT segment-', 'PUT chain/'])(
  'an opening that cannot roll, because of %s, serves what is there',
  async (step) => {
    const s3 = new FakeS3()
    const before = await opened(rolling(s3, 1_000_000))
    await notes(before).append('1'.repeat(5_000))
    await before.close()
    let pieces = 0
    s3.faultOf = (method, key) => {
      // The second request tests whether the bucket honours the condition.
      const isFence = method === 'PUT' && key.startsWith('chain/') && pieces++ < 2
      return !isFence && `${method} ${key}`.startsWith(step) ? 'refuse' : undefined
    }
    const hw = await opened(rolling(s3))
    expect(await bodies(hw)).toEqual(['1'.repeat(5_000)])
    s3.faultOf = () => undefined
    await notes(hw).append('second')
    expect(await bodies(hw)).toEqual(['1'.repeat(5_000), 'second'])
  },
)

describe('an opening removes what crashes have left:', () => {
  /** Rolls until a request, which is lost with all later ones. */
  async function crashedAt(step: string): Promise<FakeS3> {
    const s3 = new FakeS3()
    // Never closed.
    const hw = await open({ storage: rolling(s3) })
    const reached = deferred<void>()
    s3.faultOf = async (method, key) => {
      if (`${method} ${key}`.startsWith(step)) reached.resolve()
      else return undefined
      return crash()
    }
    void notes(hw)
      .append('1'.repeat(5_000))
      .catch(() => {})
    await reached.promise
    s3.faultOf = () => undefined
    return s3
  }

  it.each(['PUT segment-', 'PUT checkpoint-', 'DELETE chain/'])(
    'segments, checkpoints and pieces after a crash before %s',
    async (step) => {
      const s3 = await crashedAt(step)
      const hw = await opened(rolling(s3))
      expect(await bodies(hw)).toEqual(['1'.repeat(5_000)])
      await notes(hw).append('2'.repeat(5_000))
      await hw.close()
      await (await opened(rolling(s3))).close()
      expect(partsOf(s3, 'checkpoint-')).toHaveLength(1)
      expect(partsOf(s3, 'segment-').length).toBeLessThanOrEqual(2)
    },
  )

  it('the first parts of a large segment', { tags: ['slow'] }, async () => {
    const s3 = new FakeS3()
    const first = await open({ storage: rolling(s3, 36_000_000) })
    const reached = deferred<void>()
    let parts = 0
    s3.faultOf = async (method, key) => {
      if (method === 'PUT' && key.startsWith('segment-') && parts++ > 0) reached.resolve()
      return parts > 1 ? crash() : undefined
    }
    const large = 'x'.repeat(900_000)
    const append = () => notes(first).append(large)
    const appends = Promise.all(Array.from({ length: 42 }, append)).catch(() => {})
    void appends
    await reached.promise
    expect(partsOf(s3, 'segment-')).toHaveLength(1)
    s3.faultOf = () => undefined
    const second = await opened(s3.storage({ takeOver: true }))
    expect(partsOf(s3, 'segment-')).toHaveLength(0)
    expect((await bodies(second)).every((body) => body === large)).toBe(true)
  })
})

function partsOf(s3: FakeS3, prefix: string): readonly string[] {
  return [...s3.objects.keys()].filter((key) => key.startsWith(prefix))
}

it.each(['segment-', 'checkpoint-'])(
  'an opening rejects a %s of an earlier preview, and removes nothing',
  async (prefix) => {
    const s3 = new FakeS3()
    const hw = await opened(rolling(s3))
    for (let i = 0; i < 20; i++) await notes(hw).append('x'.repeat(500))
    await hw.close()
    const parts = partsOf(s3, prefix)
    expect(parts).not.toEqual([])
    // Previews stored a file in one object.
    for (const key of parts) {
      s3.objects.set(key.split('/')[0]!, s3.objects.get(key)!)
      s3.objects.delete(key)
    }
    const before = [...s3.objects.keys()]
    await expect(open({ storage: rolling(s3) })).rejects.toMatchObject({
      code: 'storage',
      message: expect.stringContaining('earlier preview'),
      cause: { kind: 'blocked', nothingWritten: true },
    })
    expect([...s3.objects.keys()]).toEqual(expect.arrayContaining(before))
  },
)

it('pieces without data stay only where they fence a writer or confirm the last checkpoint', async () => {
  const s3 = new FakeS3()
  for (let opening = 0; opening < 3; opening++) {
    const hw = await opened(rolling(s3))
    for (let i = 0; i < 20; i++) await notes(hw).append('x'.repeat(500))
    await hw.close()
  }
  await opened(rolling(s3))
  const pieces = [...s3.objects].filter(([key]) => key.startsWith('chain/'))
  expect(pieces.filter(([, { body }]) => body.length === 16)).toHaveLength(4)
  const confirmations = pieces.filter(([, { body }]) => body.includes('checkpoint-'))
  expect(confirmations).toHaveLength(1)
})

describe('of two processes', () => {
  it('an opening fails with an error that names the process with the bucket', async () => {
    const s3 = new FakeS3()
    await opened(s3.storage())
    await expect(open({ storage: s3.storage() })).rejects.toThrow(`process ${process.pid} on`)
  })

  it('that open it at the same time, one does, and the other one learns of it', async () => {
    const s3 = new FakeS3()
    const [first, second] = await Promise.allSettled([
      open({ storage: s3.storage() }),
      open({ storage: s3.storage() }),
    ])
    const opened = [first, second].flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
    expect(opened).toHaveLength(1)
    await notes(opened[0]!).append('first')
    expect(await bodies(opened[0]!)).toEqual(['first'])
    await opened[0]!.close()
  })

  it('that take it over at the same time, one writes', async () => {
    const s3 = new FakeS3()
    const append = async () => notes(await opened(rolling(s3))).append('once')
    const appended = await Promise.allSettled([append(), append()])
    expect(appended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await bodies(await opened(rolling(s3)))).toEqual(['once'])
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

  it('one that pauses while it opens the bucket removes nothing of a later one', async () => {
    const steps = ['GET checkpoint-', 'GET chain/', 'GET ', 'GET segment-', 'DELETE ']
    for (const step of steps) {
      const s3 = new FakeS3()
      const writer = await opened(rolling(s3))
      for (let i = 0; i < 8; i++) await notes(writer).append(`${i}${'x'.repeat(700)}`)
      const [reached, released] = [deferred<void>(), deferred<void>()]
      let isOpening = false
      s3.faultOf = async (method, key) => {
        if (method === 'PUT' && key.startsWith('chain/')) isOpening = true
        const isStep = `${method} ${key}`.startsWith(step)
        if (!isOpening || !isStep) return undefined
        reached.resolve()
        await released.promise
        return undefined
      }
      const pausing = opened(rolling(s3)).catch(() => undefined)
      await Promise.race([reached.promise, pausing])
      s3.faultOf = () => undefined
      const later = await opened(rolling(s3))
      for (let i = 8; i < 16; i++) await notes(later).append(`${i}${'x'.repeat(700)}`)
      released.resolve()
      const paused = await pausing
      // An opening that goes on may take the bucket over from the later one.
      const isStored = await (paused && notes(paused).append('late'))?.then(
        () => true,
        () => false,
      )
      const all = Array.from({ length: 16 }, (_, i) => `${i}${'x'.repeat(700)}`)
      expect(await bodies(later), step).toEqual(all)
      await later.close()
      expect(await bodies(await opened(rolling(s3))), step).toEqual(isStored ? [...all, 'late'] : all)
    }
  })

  it('a late renewal of an earlier owner does not stop the later one', async () => {
    const s3 = new FakeS3()
    const clock = virtualClock()
    const hw = await passed(clock, open({ storage: rolling(s3), clock, onBackgroundError: () => {} }))
    s3.objects.set('owner', { body: Buffer.from('process 1 on another'), at: s3.now() })
    await clock.advance('11s')
    await passed(clock, notes(hw).append('first'))
    expect(s3.objects.get('owner')!.body.toString()).toContain(`process ${process.pid}`)
    await passed(clock, hw.close())
  })

  it('one that has lost the bucket reports it within ten seconds', async () => {
    const s3 = new FakeS3()
    const clock = virtualClock()
    const reported = deferred<unknown>()
    await passed(clock, open({ storage: rolling(s3), clock, onBackgroundError: reported.resolve }))
    await opened(rolling(s3))
    await clock.advance('11s')
    await expect(reported.promise).resolves.toMatchObject({ message: expect.stringContaining('taken over') })
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
      const third = await opened(rolling(s3))
      expect(await bodies(third), step).toEqual(all)
      // Waits for the roll that the opening may have begun.
      await third.close()
      // What the first one could not confirm is removed.
      expect(partsOf(s3, 'checkpoint-').length, step).toBeLessThanOrEqual(1)
    }
  })
})

/** What happens to the requests of a process that has crashed: nothing before the end of the test. */
function crash(): Promise<Fault> {
  const ended = deferred<Fault>()
  onTestFinished(() => ended.resolve('refuse'))
  return ended.promise
}

/** Lets time pass until the work is done. */
async function passed<Result>(clock: VirtualClock, work: Promise<Result>): Promise<Result> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  while (!isDone) await clock.advance('100ms')
  return work
}

/** Rolls its journals often, and takes the bucket over. */
function rolling(s3: FakeS3, rollBytes = 2_000): Storage {
  return {
    manifest: s3.storage().manifest,
    open: (context) => openBucket(locationOf(s3), { takeOver: true, rollBytes }, context),
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

it.each(['ExpiredToken', 'InvalidAccessKeyId', 'SignatureDoesNotMatch'])(
  'credentials are asked for again after %s',
  async (code) => {
    const s3 = new FakeS3()
    const keys = ['old', 'new']
    const credentials = async () => ({ accessKeyId: keys.shift()!, secretAccessKey: 'secret' })
    const hw = await opened(s3.storage({ credentials }))
    await notes(hw).append('first')
    s3.oldKey = { id: 'old', code }
    await notes(hw).append('second')
    expect(await bodies(hw)).toEqual(['first', 'second'])
    expect(keys).toEqual([])
    await hw.close()
    // Also by the first request of an opening.
    keys.push('old', 'new')
    expect(await bodies(await opened(s3.storage({ credentials })))).toEqual(['first', 'second'])
    expect(keys).toEqual([])
  },
)

it('a request with a large body is given more time', async () => {
  const bucket = new S3Bucket(locationOf(new FakeS3()))
  const timeout = vi.spyOn(AbortSignal, 'timeout')
  onTestFinished(() => timeout.mockRestore())
  await bucket.put('small', Buffer.alloc(100))
  await bucket.put('large', Buffer.alloc(9_000_000))
  await bucket.get('large', 0, 6_000_000)
  expect(timeout.mock.calls).toEqual([[30_001], [120_000], [90_000]])
})

it.each([
  ['an unknown option', { bukcet: 'x' }, 'bukcet'],
  ['a name that is none', { bucket: 'Not A Bucket' }, 'bucket'],
  ['a prefix that needs escapes', { prefix: 'a b' }, 'prefix'],
  ['a size that is none', { bucket: 'data', cacheBytes: -1 }, 'cacheBytes'],
])('%s is refused', (_, options, field) => {
  expect(() => new FakeS3().storage(options as never)).toThrow(
    expect.objectContaining({ code: 'invalid', field }),
  )
})

it('closes although its owner cannot be removed', async () => {
  const s3 = new FakeS3()
  const hw = await open({ storage: s3.storage() })
  s3.faultOf = (_, key) => (key === 'owner' ? 'lose request' : undefined)
  s3.requests.length = 0
  await hw.close()
  expect(s3.requests.filter((request) => request.endsWith(' owner'))).toEqual(['GET owner'])
})

it('with `flushMs`, appends that arrive meanwhile share a request', async () => {
  const s3 = new FakeS3()
  const clock = virtualClock()
  const passing = <Result>(work: Promise<Result>) => passed(clock, work)
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

it('makes the requests that docs/s3.md counts', { tags: ['slow'] }, async () => {
  const s3 = new FakeS3()
  const clock = virtualClock()
  const hw = await passed(clock, open({ storage: s3.storage(), clock }))
  await passed(clock, notes(hw).append('first'))
  const counted = async (seconds: number, work: () => unknown) => {
    s3.requests.length = 0
    for (let i = 0; i < seconds; i++) {
      work()
      await clock.advance('1s')
    }
    const count = (start: string) => s3.requests.filter((request) => request.startsWith(start)).length
    return { put: count('PUT ') / seconds, get: count('GET ') / seconds }
  }
  const idle = await counted(600, () => {})
  expect(idle.put).toBeCloseTo(0.1, 1)
  expect(idle.get).toBeCloseTo(0.1, 1)
  const appending = await counted(1_200, () => notes(hw).append('one a second'))
  expect(appending.put).toBeGreaterThan(1.09)
  expect(appending.put).toBeLessThan(1.2)
  expect(appending.get).toBeLessThan(1.2)
  await passed(clock, hw.close())
})

it('many small groups are rolled into larger objects, which a reopened storage reads', {
  tags: ['slow'],
}, async () => {
  const s3 = new FakeS3()
  const hw = await opened(s3.storage())
  for (let i = 0; i < 1_100; i++) await notes(hw).append(`${i}`)
  await hw.close()
  expect(partsOf(s3, 'segment-')).toHaveLength(1)
  expect(partsOf(s3, 'chain/').length).toBeLessThan(1_000)
  const texts = await bodies(await opened(s3.storage()))
  expect(texts).toEqual(Array.from({ length: 1_100 }, (_, i) => `${i}`))
})
