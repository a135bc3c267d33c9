import { expect, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { openDevice, openServer } from './mirrored.ts'
import { bodies, isPost, numbered, startOn } from './outboxes.ts'

/** Two tabs with the outbox of one device, of which the first sends. The storage can fail for the second. */
async function openTabs() {
  const server = await openServer()
  const { clock, network } = server
  await server.stream.readBatch({}, { create: true })
  const storage = memory()
  const faulty = faultyStorage(storage)
  const first = startOn(await openDevice(server, storage))
  await clock.settle()
  const second = startOn(await openDevice(server, faulty))
  await clock.settle()
  return { server, clock, network, faulty, first, second }
}

const OUTCOMES = [
  ['once', 'knows where they are', { start: { seqNum: 1 } }],
  ['twice', 'cannot know it', { code: 'outcome_unknown' }],
] as const

test.each(OUTCOMES)(
  'a tab that missed what another one has sent and trimmed %s does not send it again, and %s',
  { tags: ['slow'] },
  async (trims, _, outcome) => {
    const { server, clock, network, faulty, first, second } = await openTabs()
    network.refuse()
    await first.append('of the first tab')
    const own = await second.append('of the second tab')
    await clock.settle()
    faulty.fail('read')
    faulty.fail('head')
    network.heal()
    const others = trims === 'once' ? [numbered(0, 100)] : [numbered(0, 100), numbered(100, 200)]
    for (const batch of others) {
      for (const body of batch) await first.append(body)
      await clock.advance('1m')
      expect(first.isFlushed).toBe(true)
    }
    expect(second.isFlushed).toBe(false)
    faulty.heal()
    await clock.advance('2m')
    await second.flush()
    await first.close()
    await second.append('last')
    await clock.advance('1m')
    expect(await bodies(server)).toEqual(['of the first tab', 'of the second tab', ...others.flat(), 'last'])
    expect(await own.confirmed().catch((error: unknown) => error)).toMatchObject(outcome)
  },
)

test('an append is confirmed if another tab has sent it before the append resolves', async () => {
  const { server, clock, faulty, first, second } = await openTabs()
  faulty.delay('append', '30s', { after: true, nth: 1 })
  const appending = second.append('x')
  await clock.advance('5s')
  expect(await bodies(server)).toEqual(['x'])
  await first.append('y')
  await clock.advance('5s')
  expect(await bodies(server)).toEqual(['x', 'y'])
  await clock.advance('1m')
  const { confirmed } = await appending
  const late = clock.advance('1s').then(() => 'never')
  expect(await Promise.race([confirmed(), late])).toMatchObject({ start: { seqNum: 0 } })
})

test('a batch is not discarded after another tab has decided to send it', async () => {
  const { server, clock, network, first, second } = await openTabs()
  network.respond(403, { code: 'permission_denied', when: isPost })
  const { number, confirmed } = await first.append('x')
  await clock.advance('1m')
  expect(second.failed).toMatchObject([{ number }])
  network.heal()
  const [retried, discarded] = await Promise.allSettled([first.retry(number), second.discard(number)])
  expect(retried.status).toBe('fulfilled')
  expect(discarded).toMatchObject({ status: 'rejected', reason: { code: 'invalid', field: 'number' } })
  await clock.advance('1m')
  expect(await confirmed()).toMatchObject({ start: { seqNum: 0 } })
  expect(await bodies(server)).toEqual(['x'])
})
