import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { syncedStream } from '../../adapters/sync/synced.ts'
import type { SyncedStream } from '../../adapters/sync/synced-stream.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { wrapped } from '../support/index.ts'

const METHODS = ['console.debug', 'console.log', 'console.info', 'console.warn', 'console.error']

/** Everything that a device stores in `storage`, and that is logged or shown from now on. */
function watchDevice() {
  const seen: unknown[] = []
  for (const method of METHODS) {
    const spy = vi.spyOn(console, method.replace('console.', '') as 'log')
    spy.mockImplementation((...args) => void seen.push(args))
    onTestFinished(() => spy.mockRestore())
  }
  const watch = (session: StorageSession, method: 'commit' | 'append') => {
    return (...args: unknown[]) => {
      seen.push(args)
      return (session[method] as (...args: unknown[]) => Promise<never>)(...args)
    }
  }
  const storage = wrapped(memory(), {}, (session) => ({
    commit: watch(session, 'commit'),
    append: watch(session, 'append'),
  }))
  const show = ({ state$, outbox }: SyncedStream) => {
    state$.subscribe((state) => seen.push(state))
    outbox.state$.subscribe((state) => seen.push(state))
    outbox.failed$.subscribe((failed) => seen.push(failed))
  }
  const texts = () =>
    seen.map((value) => {
      const bytes = inspect(value, { depth: 20, maxArrayLength: null, maxStringLength: null })
      return bytes.replaceAll(/<Buffer[^>]*>|Uint8Array\(\d+\) \[([\d\s,]*)\]/g, (text, numbers?: string) =>
        numbers === undefined ? text : String.fromCharCode(...numbers.split(',').map(Number)),
      )
    })
  return { storage, show, texts }
}

const OPTIONS = { random: () => 0.5, coordinator: coordinateInThread } as const

test('a token is neither stored nor logged, whether the server accepts it or not', async () => {
  const clock = virtualClock()
  const server = await open({ storage: memory(), clock })
  const handler = createHandler(server, { auth: 'token' })
  await server.createBasin('basin')
  await server.basin('basin').createStream('stream')
  const scope = {
    basins: { exact: 'basin' },
    streams: { prefix: '' },
    opGroups: { stream: { read: true, write: true } },
  } as const
  const token = await server.issueAccessToken({ id: 'device', scope })
  const { storage, show, texts } = watchDevice()
  const hw = await open({ storage, clock })
  const client = await connect({ url: 'http://localhost', fetch: handler, clock, getToken: () => token })
  const synced = syncedStream(
    client.basin('basin').stream('stream'),
    hw.basin('basin').stream('stream'),
    OPTIONS,
  )
  onTestFinished(async () => {
    await synced.close()
    await client.close()
    await hw.close()
    await server.close()
  })
  show(synced)
  await (await synced.append('sent')).confirmed()
  await server.revokeAccessToken('device')
  await synced.append('waiting')
  await clock.advance('1m')
  expect(synced.outbox.content.waiting).toHaveLength(1)
  expect(texts().some((text) => text.includes('waiting'))).toBe(true)
  expect(texts().filter((text) => text.includes(token.slice(-16)))).toEqual([])
})

test('an encryption key is neither stored nor logged, whether it is valid or not', async () => {
  const clock = virtualClock()
  const server = await open({ storage: memory(), clock })
  const handler = createHandler(server, { auth: 'none' })
  await server.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const { storage, show, texts } = watchDevice()
  const hw = await open({ storage, clock })
  await hw.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const client = await connect({ url: 'http://localhost', fetch: handler, clock })
  const key = randomBytes(32)
  const otherKey = randomBytes(32)
  const local = hw.basin('basin').stream('stream', { encryptionKey: otherKey })
  const synced = syncedStream(client.basin('basin').stream('stream', { encryptionKey: key }), local, OPTIONS)
  const withOtherKey = syncedStream(
    client.basin('basin').stream('stream', { encryptionKey: otherKey.toString('base64') }),
    hw.basin('basin').stream('copy', { encryptionKey: key }),
    OPTIONS,
  )
  onTestFinished(async () => {
    await synced.close()
    await withOtherKey.close()
    await client.close()
    await hw.close()
    await server.close()
  })
  show(synced)
  show(withOtherKey)
  const appended = await synced.append('sent')
  await clock.advance('1m')
  await appended.confirmed()
  expect(synced.state.kind).toBe('live')
  expect(withOtherKey.state.kind).not.toBe('live')
  expect(texts().length).toBeGreaterThan(10)
  for (const secret of [key, otherKey]) {
    const forms = [secret.toString('base64'), secret.toString('hex'), secret.toString('latin1')]
    for (const form of forms) expect(texts().filter((text) => text.includes(form))).toEqual([])
  }
})
