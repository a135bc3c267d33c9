import { firstValueFrom, take, toArray } from 'rxjs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Headwater, HeadwaterError, type OpenOptions, open, type Storage } from '../../../src/index.ts'
import { testStorage } from '../../test-storage.ts'
import { bodies, readAll } from '../support.ts'

const REST = '../../../src/engine/rest.ts'
const MINUTE_SECONDS = 60
const UNAVAILABLE = '503 unavailable: part of headwater could not be loaded'

let hw: Headwater
/** Lets the code come. */
let come: () => void

/** As in a browser, where code comes over a network: here when the test says so. */
function holdCode(): void {
  findCode()
  const gate = new Promise<void>((resolve) => {
    come = resolve
  })
  vi.doMock(REST, async (importOriginal) => {
    await gate
    return importOriginal()
  })
}

function loseCode(): void {
  // Of two mocks that are made one after the other, either may win.
  findCode()
  vi.doMock(REST, () => {
    throw new Error('no network')
  })
}

function findCode(): void {
  vi.doUnmock(REST)
  vi.resetModules()
}

beforeEach(holdCode)

afterEach(async () => {
  come()
  await hw.close()
  findCode()
})

/** A storage in which another engine has created the stream, with a record in it. */
async function storageWithStream(): Promise<Storage> {
  const storage = testStorage()
  findCode()
  const creator = await open({ storage })
  await creator.basin('basin').stream('stream').append('a')
  await creator.close()
  holdCode()
  return storage
}

async function openAsInBrowser(options: Partial<OpenOptions> = {}) {
  vi.stubGlobal('process', { ...process, getBuiltinModule: undefined })
  hw = await open({ storage: testStorage(), ...options })
  vi.unstubAllGlobals()
  return { hw, stream: hw.basin('basin').stream('stream') }
}

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'done',
    (error) => (HeadwaterError.is(error) ? `${error.status} ${error.code}: ${error.message}` : String(error)),
  )

describe('before the rest of an engine is there', () => {
  it('streams are opened, appended to, read and followed; one that is not there waits to be created', async () => {
    const { hw, stream } = await openAsInBrowser({ storage: await storageWithStream() })
    await stream.append('b')
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['a', 'b'])
    const followed = firstValueFrom(stream.read({ seqNum: 1 }).text$.pipe(take(2), toArray()))
    await stream.append('c', { matchSeqNum: 2 })
    expect((await followed).map(({ body }) => body)).toEqual(['b', 'c'])
    await stream.trim(2)
    expect((await stream.checkTail()).seqNum).toBe(4)
    const created = hw.basin('basin').stream('another').append('a')
    come()
    expect(await created).toMatchObject({ end: { seqNum: 1 } })
  })

  it('what is done is counted once it is there', async () => {
    const { hw, stream } = await openAsInBrowser({ storage: await storageWithStream() })
    await stream.append('12345')
    await stream.readBatch({ seqNum: 0 })
    const start = Math.floor(hw.now() / 1000) - MINUTE_SECONDS
    const counters = hw.counters()
    const told = hw
      .basin('basin')
      .metrics({ set: 'append-throughput', start, end: start + 2 * MINUTE_SECONDS })
    come()
    expect(await counters).toMatchObject({ appends: 1, appendedRecords: 1, unaryReads: 1, readBatches: 1 })
    const bytes = (await told).flatMap((metric) => (metric.kind === 'accumulation' ? metric.values : []))
    // That of the other engine, and this one's.
    expect(bytes.reduce((sum, [, value]) => sum + value, 0)).toBe(9 + 13)
  })

  it('calls that need it wait, and are made in their order', async () => {
    const { hw } = await openAsInBrowser()
    const calls = [
      hw.createBasin('basin'),
      hw.createBasin('basin'),
      hw.deleteBasin('basin'),
      hw.createBasin('basin'),
    ]
    const outcomes = Promise.all(calls.map(outcome))
    come()
    expect(await outcomes).toEqual([
      'done',
      '409 resource_already_exists: basin `basin` already exists',
      'done',
      '409 basin_deletion_pending: basin `basin` is being deleted',
    ])
  })

  it('a stream that is created on first use gets what its basin was made with before', async () => {
    const { hw, stream } = await openAsInBrowser()
    const made = hw.ensureBasin('basin', { defaultStreamConfig: { storageClass: 'standard' } })
    const appended = stream.append('a')
    come()
    await Promise.all([made, appended])
    expect(await hw.basin('basin').streamConfig('stream')).toMatchObject({ storageClass: 'standard' })
  })

  it('a session whose signal aborts meanwhile is not waited for', async () => {
    const { hw, stream } = await openAsInBrowser({ storage: await storageWithStream() })
    const leaving = new AbortController()
    const session = stream.appendSession({ signal: leaving.signal })
    // It comes to where it waits for code.
    await stream.append('b')
    leaving.abort(new Error('left'))
    await expect(session).rejects.toThrow('left')
    expect(hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
  })

  it('whoever closes loses nothing of what was counted', async () => {
    const storage = await storageWithStream()
    const { hw: first, stream } = await openAsInBrowser({ storage })
    await stream.append('12345')
    const start = Math.floor(first.now() / 1000) - MINUTE_SECONDS
    const closed = first.close()
    come()
    await closed
    const { hw: second } = await openAsInBrowser({ storage })
    const query = { set: 'append-throughput', start, end: start + 2 * MINUTE_SECONDS } as const
    const told = await second.basin('basin').metrics(query)
    const bytes = told.flatMap((metric) => (metric.kind === 'accumulation' ? metric.values : []))
    expect(bytes.reduce((sum, [, value]) => sum + value, 0)).toBe(9 + 13)
  })
})

describe('when the rest of an engine cannot be had', () => {
  it('that is reported, and calls that need it are `unavailable`; others go on', async () => {
    const storage = await storageWithStream()
    loseCode()
    const errors: unknown[] = []
    const onBackgroundError = (error: unknown) => void errors.push(error)
    const { hw, stream } = await openAsInBrowser({ storage, onBackgroundError })
    const basin = hw.basin('basin')
    await expect.poll(() => errors).toMatchObject([{ code: 'unavailable' }])
    const calls: Promise<unknown>[] = [
      basin.stream('another').append('a'),
      hw.ensureBasin('other'),
      hw.listBasins(),
      basin.createStream('other'),
      basin.deleteStream('stream'),
      hw.defaultLocation(),
      stream.metrics({ set: 'storage', start: 0, end: 1 }),
      hw.counters(),
      stream.appendSession(),
      stream.appendAll(['b']).next(),
      stream.producer().submit('b'),
    ]
    expect(await Promise.all(calls.map(outcome))).toEqual(calls.map(() => UNAVAILABLE))
    await stream.append('b')
    expect(await readAll(stream)).toEqual(['a', 'b'])
    expect(hw.stats()).toMatchObject({ openReads: 0, pendingAppends: 0, appendBytesInFlight: 0 })
    findCode()
    const session = await stream.appendSession()
    await session.submit('c')
    await session.close()
    expect((await hw.counters()).appends).toBe(2)
  })

  it('a producer goes on when it can be had', async () => {
    const storage = await storageWithStream()
    loseCode()
    const { stream } = await openAsInBrowser({ storage })
    const producer = stream.producer()
    expect(await outcome(producer.submit('lost'))).toBe(UNAVAILABLE)
    findCode()
    const ticket = await producer.submit('kept')
    await producer.flush()
    expect(await ticket.ack()).toMatchObject({ seqNum: 1 })
    await producer.close()
  })
})
