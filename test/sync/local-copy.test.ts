import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { LocalCopy } from '../../adapters/sync/local-copy.ts'
import { openCopy, replaceCopy } from '../../adapters/sync/open-copy.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { outcomeOf } from '../support/engine.ts'
import { contentOf } from './mirrored.ts'

const { signal } = new AbortController()
const RECORD = { body: 'a', timestamp: 1 }

/** Copies of one stream in two tabs. */
async function openTabs() {
  const storage = memory()
  const clock = virtualClock()
  const engines = [await open({ storage, clock }), await open({ storage, clock })]
  onTestFinished(async () => {
    for (const hw of engines) await hw.close()
  })
  const locals = engines.map((hw) => hw.basin('basin').stream('stream'))
  const [one, other] = locals.map((local) => new LocalCopy(local)) as [LocalCopy, LocalCopy]
  return { one, other, local: locals[0]!, clock }
}

it('a copy is created once, also by two tabs at the same time', async () => {
  const { one, other, local } = await openTabs()
  const identities = await Promise.all([one.ensure(), other.ensure(), one.ensure()])
  expect(new Set(identities).size).toBe(1)
  expect((await local.config()).timestamping).toEqual({ mode: 'client-require', uncapped: true })
})

it('a copy is only opened by its identity', async () => {
  const { one, other } = await openTabs()
  const identity = await one.ensure()
  await replaceCopy(other, 0)
  expect(await openCopy(one, identity, signal)).toBeUndefined()
  const opened = await openCopy(one, await one.ensure(), signal)
  expect(opened?.end).toEqual({ tail: { seqNum: 0, timestamp: 0 }, last: undefined })
  await opened?.session.close()
})

it.each(['the same tab', 'another tab'])(
  'a session of a copy that %s replaced appends nothing to the new one',
  async (by) => {
    const { one, other, local } = await openTabs()
    const opened = await openCopy(one, await one.ensure(), signal)
    await replaceCopy(by === 'another tab' ? other : one, 0)
    const appended = opened!.session.submit(RECORD, { matchSeqNum: 0 }).then((ticket) => ticket.ack())
    expect(await outcomeOf(appended)).toBe('stream_deletion_pending')
    expect(await contentOf(local)).toEqual({ records: [], end: 0 })
  },
)

it('a copy that is deleted while it is opened is not created as an ordinary stream', async () => {
  const { one, local } = await openTabs()
  const identity = await one.ensure()
  await local.delete()
  expect(await openCopy(one, identity, signal)).toBeUndefined()
  expect(await local.exists()).toBe(false)
})
