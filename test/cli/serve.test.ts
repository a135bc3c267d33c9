import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, StorageFailure } from '../../src/index.ts'
import { counted, directoryKind, memoryKind, run } from './run.ts'

const OPEN = ['serve', '--open', '--port', '0']

describe('headwater serve', () => {
  it('serves, tells where and how, and stops when asked to', async () => {
    const { storage, counts } = counted(memory())
    const { ready, out, err, signals, exitCode } = run(OPEN, { storages: [memoryKind(storage)] })
    const url = await ready()
    expect((await fetch(`${url}/v1/basins`)).status).toBe(200)
    expect(out).toContain(`Health:  ${url}/health`)
    expect(out).toContain('Storage: memory (soon gone)')
    expect(out.filter((line) => line.startsWith('curl '))).toHaveLength(3)
    expect(out.join('\n')).not.toMatch(/bearer|root token/i)
    signals.emit('SIGINT')
    expect(await exitCode).toBe(0)
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(err).toEqual([])
    expect(signals.eventNames()).toEqual([])
    await expect(fetch(`${url}/health`)).rejects.toThrow()
  })

  it('stops at once with a second signal, which a repeat of the first press is not', async () => {
    let finish!: () => void
    const closing = new Promise<void>((resolve) => (finish = resolve))
    const { storage } = counted(memory(), () => closing)
    const { ready, signals, exits, exitCode, advance } = run(OPEN, { storages: [memoryKind(storage)] })
    await ready()
    signals.emit('SIGINT')
    advance(100)
    signals.emit('SIGINT')
    expect(exits).toEqual([])
    advance(1_000)
    signals.emit('SIGINT')
    expect(exits).toEqual([130])
    signals.emit('SIGTERM')
    expect(exits).toEqual([130, 143])
    finish()
    expect(await exitCode).toBe(0)
  })

  it('says that a port is in use, frees what it had opened, and makes no token that nobody sees', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const { storage, counts } = counted(memory())
    const storages = [memoryKind(storage)]
    const { exitCode, err, signals } = run(['serve', '--port', String(port)], { storages })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([`headwater: port ${port} of 127.0.0.1 is in use. Choose another with --port`])
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(signals.eventNames()).toEqual([])
    const next = run(['serve', '--port', '0'], { storages })
    await next.ready()
    expect(next.out.join('\n')).toContain('shown only now')
  })

  it.each([
    ['a port in use', (port: number) => ['--port', String(port)]],
    ['an address of another machine', () => ['--port', '0', '--host', '192.0.2.1']],
  ])('a start that fails for %s leaves the root token as it was', async (_, options) => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const storage = memory()
    const hw = await open({ storage })
    onTestFinished(() => hw.close())
    const token = (await hw.createRootToken())!
    const args = ['serve', ...options(port), '--root-token', 'another-token-altogether']
    expect(await run(args, { storages: [memoryKind(storage)] }).exitCode).toBe(1)
    await expect(hw.as(token).listBasins()).resolves.toBeDefined()
    await expect(hw.as('another-token-altogether').listBasins()).rejects.toMatchObject({ code: 'authn' })
  })

  it('warns when everybody may come in', async () => {
    const { ready, err } = run([...OPEN, '--host', '0.0.0.0'])
    await ready()
    expect(err).toEqual([expect.stringMatching(/^Warning: .*0\.0\.0\.0/)])
  })

  it('does not warn of those who need a token', async () => {
    const { ready, err } = run(['serve', '--port', '0', '--host', '0.0.0.0'])
    await ready()
    expect(err).toEqual([])
  })

  it('says why a storage does not open', async () => {
    const storage = {
      manifest: memory().manifest,
      open: () => Promise.reject(new StorageFailure('io', 'the disk is away', { nothingWritten: true })),
    }
    const { exitCode, err } = run(OPEN, { storages: [memoryKind(storage)] })
    expect(await exitCode).toBe(1)
    expect(err).toEqual(['headwater: the storage failed (io): the disk is away'])
  })

  it.each([[['--dir', 'here']], [['--storage', 'shelf', '--dir', 'here']]])(
    'keeps streams in a directory: %j',
    async (options) => {
      const storages = [memoryKind(), directoryKind()]
      const first = run([...OPEN, ...options], { storages })
      const url = await first.ready()
      expect(first.out).toContain('Storage: shelf in here (stays)')
      expect((await fetch(`${url}/v1/basins/my-basin`, { method: 'PUT' })).status).toBe(201)
      first.signals.emit('SIGTERM')
      await first.exitCode
      const second = run([...OPEN, ...options], { storages })
      expect(await (await fetch(`${await second.ready()}/v1/basins`)).json()).toMatchObject({
        basins: [{ name: 'my-basin' }],
      })
    },
  )

  it('tells what goes wrong inside to whoever runs it', async () => {
    const { storage } = counted(memory())
    const failing = {
      manifest: storage.manifest,
      open: async (context: Parameters<typeof storage.open>[0]) =>
        Object.assign(await storage.open(context), {
          list: () => Promise.reject(new StorageFailure('io', 'the disk is away', { nothingWritten: true })),
        }),
    }
    const { ready, err } = run(OPEN, { storages: [memoryKind(failing)] })
    expect((await fetch(`${await ready()}/v1/basins`)).status).toBe(500)
    expect(err.join('\n')).toContain('the storage failed')
  })
})
