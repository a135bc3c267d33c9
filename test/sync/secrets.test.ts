import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { SyncedStream } from '../../adapters/sync/synced-stream.ts'
import type { StorageSession } from '../../src/storage/contract.ts'
import { wrapped } from '../support/index.ts'
import { openDevice, openServer } from './mirrored.ts'

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

test('a token is neither stored nor logged, whether the server accepts it or not', async () => {
  const server = await openServer({}, { auth: 'token' })
  await server.hw.createBasin('basin')
  await server.hw.basin('basin').createStream('stream')
  const token = await server.hw.issueAccessToken({
    id: 'device',
    scope: {
      basins: { exact: 'basin' },
      streams: { prefix: '' },
      opGroups: { stream: { read: true, write: true } },
    },
  })
  const { storage, show, texts } = watchDevice()
  const { startSynced } = await openDevice(server, storage, { getToken: () => token })
  const synced = startSynced()
  show(synced)
  await (await synced.append('sent')).confirmed()
  await server.hw.revokeAccessToken('device')
  await synced.append('waiting')
  await server.clock.advance('1m')
  expect(synced.outbox.isFlushed).toBe(false)
  expect(texts().some((text) => text.includes('waiting'))).toBe(true)
  expect(texts().filter((text) => text.includes(token.slice(-16)))).toEqual([])
})

test('an encryption key is neither stored nor logged, whether it is valid or not', async () => {
  const [key, otherKey] = [randomBytes(32), randomBytes(32)]
  const server = await openServer()
  await server.hw.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const { storage, show, texts } = watchDevice()
  const { hw, remoteBasin, startSynced } = await openDevice(server, storage)
  await hw.createBasin('basin', { streamCipher: 'aes-256-gcm' })
  const local = hw.basin('basin')
  const synced = startSynced(
    {},
    {
      remote: remoteBasin.stream('stream', { encryptionKey: key }),
      local: local.stream('stream', { encryptionKey: otherKey }),
    },
  )
  const withOtherKey = startSynced(
    {},
    {
      remote: remoteBasin.stream('stream', { encryptionKey: otherKey.toString('base64') }),
      local: local.stream('copy', { encryptionKey: key }),
    },
  )
  show(synced)
  show(withOtherKey)
  const appended = await synced.append('sent')
  await server.clock.advance('1m')
  await appended.confirmed()
  expect(synced.state.kind).toBe('live')
  expect(withOtherKey.state.kind).not.toBe('live')
  expect(texts().length).toBeGreaterThan(10)
  for (const secret of [key, otherKey]) {
    const forms = [secret.toString('base64'), secret.toString('hex'), secret.toString('latin1')]
    for (const form of forms) expect(texts().filter((text) => text.includes(form))).toEqual([])
  }
})
