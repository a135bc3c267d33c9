import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { syncedStream } from '../../adapters/sync/index.ts'
import { open } from '../../src/index.ts'
import { testClock } from '../support/index.ts'

it.each([
  ['fails without a network', () => Promise.reject(new TypeError('Failed to fetch'))],
  ['returns a page', async () => '<html>502</html>'],
  ['never settles', () => new Promise<string>(() => {})],
])('a synced stream sends and copies after `getToken` %s', { tags: ['slow'] }, async (_, failing) => {
  const clock = testClock({ now: 1_000_000 })
  const server = await open({ storage: memory(), clock })
  const hw = await open({ storage: memory(), clock })
  await server.createBasin('basin', { createStreamOnAppend: true })
  const ops = { read: true, write: true }
  const scope = { basins: { prefix: '' }, streams: { prefix: '' }, opGroups: { stream: ops } }
  const token = await server.issueAccessToken({ id: 'device', scope })
  let isFailing = true
  const remote = await connect({
    url: 'http://localhost',
    fetch: createHandler(server),
    getToken: () => (isFailing ? failing() : token),
    clock,
    random: () => 0.5,
  })
  const synced = syncedStream(remote.basin('basin').stream('chat'), hw.basin('basin').stream('chat'))
  onTestFinished(async () => {
    await synced.close()
    await Promise.all([remote.close(), hw.close()])
    await server.close()
  })
  await synced.append('hello')
  await clock.advance('10m')
  expect(['connecting', 'offline']).toContain(synced.state.kind)
  expect(synced.outbox.failed).toEqual([])
  isFailing = false
  await clock.advance('2m')
  expect(synced.outbox.isFlushed).toBe(true)
  expect(synced.state.kind).toBe('live')
  expect((await server.basin('basin').stream('chat').read().toArray()).map(({ body }) => body)).toEqual([
    'hello',
  ])
})
