// @module-tag slow

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { get as getSecurely } from 'node:https'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { counted, ROOT_TOKEN, run, testStorages } from './run.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../node/fixtures/${name}`, import.meta.url))
const CERT = fixture('test-only-cert.pem')
const KEY = fixture('test-only-key.pem')
const NO_AUTH = ['serve', '--no-auth', '--port', '0']

describe('headwater serve', () => {
  it('responds until a signal, and then closes its storage', async () => {
    const { storage, counts } = counted(memory())
    const { ready, err, signals, exitCode } = run(NO_AUTH, { storages: testStorages({ storage }) })
    const url = await ready()
    expect((await fetch(`${url}/v1/basins`)).status).toBe(200)
    signals.emit('SIGINT')
    expect(await exitCode).toBe(0)
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(err).toEqual([])
    expect(signals.eventNames()).toEqual([])
    await expect(fetch(`${url}/health`)).rejects.toThrow()
  })

  it.each([
    [[], 'https://page.example', 403],
    [['--allow-origin', 'https://page.example'], 'https://page.example', 200],
    [['--allow-origin', 'https://page.example'], 'https://other.example', 403],
    [['--allow-origin', '*'], 'https://other.example', 200],
  ])('responds without authentication, with %j, to a page of %s with %i', async (args, origin, status) => {
    const { ready } = run([...NO_AUTH, ...args])
    const url = await ready()
    expect((await fetch(`${url}/v1/basins`, { headers: { origin } })).status).toBe(status)
    expect((await fetch(`${url}/v1/basins`, { headers: { origin: url } })).status).toBe(200)
  })

  it('accepts only localhost and the hosts of `--allowed-host` without authentication', async () => {
    const statusFor = async (args: readonly string[]) => {
      const { port } = new URL(await run([...NO_AUTH, ...args]).ready())
      const response = await new Promise<IncomingMessage>((resolve) => {
        get({ port, path: '/v1/basins', headers: { host: 'streams.internal' } }, resolve)
      })
      response.resume()
      return response.statusCode
    }
    expect(await statusFor([])).toBe(421)
    expect(await statusFor(['--allowed-host', 'other.internal', '--allowed-host', 'streams.internal'])).toBe(
      200,
    )
  })

  it('stops immediately at a second signal, but not at a repetition of the first', async () => {
    let finish!: () => void
    const closing = new Promise<void>((resolve) => (finish = resolve))
    const { storage } = counted(memory(), () => closing)
    const { ready, signals, exits, exitCode, advance } = run(NO_AUTH, { storages: testStorages({ storage }) })
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

  it('reports a port in use, closes the storage, and creates no root token', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const { storage, counts } = counted(memory())
    const storages = testStorages({ storage })
    const { exitCode, err, signals } = run(['serve', '--port', String(port)], { storages })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([
      `headwater: port ${port} of \`127.0.0.1\` is already in use; choose another with \`--port\``,
    ])
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(signals.eventNames()).toEqual([])
    const next = run(['serve', '--port', '0'], { storages })
    await next.ready()
    expect(next.out.join('\n')).toContain('not shown again')
  })

  it.each([
    ['a port in use', (port: number) => ['--port', String(port)]],
    ['an address of another machine', () => ['--port', '0', '--host', '192.0.2.1']],
  ])('keeps the root token when the start fails because of %s', async (_, options) => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const storage = memory()
    const hw = await open({ storage })
    onTestFinished(() => hw.close())
    const token = (await hw.createRootToken())!
    const args = ['serve', ...options(port), '--root-token', 'another-token-altogether']
    expect(await run(args, { storages: testStorages({ storage }) }).exitCode).toBe(1)
    await expect(hw.as(token).listBasins()).resolves.toBeDefined()
    await expect(hw.as('another-token-altogether').listBasins()).rejects.toMatchObject({ code: 'authn' })
  })

  it('reports why a storage does not open', async () => {
    const storage = {
      manifest: memory().manifest,
      open: () => Promise.reject(new StorageFailure('io', 'the disk is gone', { nothingWritten: true })),
    }
    const { exitCode, err } = run(NO_AUTH, { storages: testStorages({ storage }) })
    expect(await exitCode).toBe(1)
    expect(err).toEqual(['headwater: the storage cannot be opened: the disk is gone'])
  })

  it('prints internal errors', async () => {
    const { storage } = counted(memory())
    const failing = {
      manifest: storage.manifest,
      open: async (context: Parameters<typeof storage.open>[0]) =>
        Object.assign(await storage.open(context), {
          list: () => Promise.reject(new StorageFailure('io', 'broken \u001b[2J', { nothingWritten: true })),
        }),
    }
    const { ready, err } = run(NO_AUTH, { storages: testStorages({ storage: failing }) })
    expect((await fetch(`${await ready()}/v1/basins`)).status).toBe(500)
    expect(err.join('\n')).toContain('the storage failed')
    // The lines of a stack trace stay separate, and print no escape sequences.
    expect(err.join('\n')).toMatch(/broken \\u\{1b\}\[2J(?:.*\n)+? {4}at /)
  })

  it('serves HTTPS with a certificate', async () => {
    const { ready } = run([...NO_AUTH, '--tls-cert', CERT, '--tls-key', KEY])
    const url = await ready()
    expect(url).toMatch(/^https:/)
    const [response] = await once(
      getSecurely(`${url}/health`, { ca: readFileSync(CERT), agent: false }),
      'response',
    )
    expect(response.statusCode).toBe(200)
    response.resume()
  })

  it.each([
    [CERT, './missing.pem', 'cannot read `./missing.pem` of `--tls-key`: ENOENT'],
    [KEY, KEY, `cannot use the certificate \`${KEY}\` with the key \`${KEY}\`: both must be in PEM`],
  ])('rejects %s and %s as certificate and key', async (cert, key, message) => {
    const { storage, counts } = counted(memory())
    const { exitCode, err } = run([...NO_AUTH, '--tls-cert', cert, '--tls-key', key], {
      storages: testStorages({ storage }),
    })
    expect([await exitCode, err]).toEqual([1, [expect.stringContaining(message)]])
    expect(counts.opened).toBe(0)
  })

  it.each([
    [[], { age: 604_800 }, null],
    [['--retention', 'forever'], { infinite: {} }, { infinite: {} }],
    [['--retention', '30d'], { age: 2_592_000 }, { age: 2_592_000 }],
  ])('given %j, keeps records as %j by default', async (options, own, inherited) => {
    const url = await run([...NO_AUTH, ...options]).ready()
    const headers = { 'content-type': 'application/json', 'svc-basin': 'my-basin' }
    const put = (path: string) => fetch(`${url}/v1/${path}`, { method: 'PUT', headers })
    const config = async (path: string) => (await fetch(`${url}/v1/${path}`, { headers })).json()
    await put('basins/my-basin')
    await put('streams/s')
    expect(await config('streams/s')).toMatchObject({ retention_policy: own })
    expect(await config('basins/my-basin')).toMatchObject({
      default_stream_config: { retention_policy: inherited },
    })
  })

  it.each([
    [[], 401],
    [['--public-metrics'], 200],
  ])('given %j, responds to /metrics without a token with %i', async (options, status) => {
    const { ready } = run(['serve', '--port', '0', ...options])
    expect((await fetch(`${await ready()}/metrics`)).status).toBe(status)
  })

  it('logs each request on a line, without secrets', async () => {
    const { ready, out } = run(['serve', '--port', '0', '--log', 'text', '--root-token', ROOT_TOKEN])
    const url = await ready()
    const started = out.length
    const headers = { authorization: `Bearer ${ROOT_TOKEN}`, 'svc-basin': 'app' }
    const paths = [
      '/v1/streams/web%2F1?limit=secret',
      '/v1/access-tokens/secret',
      '/secret',
      '/v1/basinssecret',
      '/health',
    ]
    for (const path of paths) await (await fetch(url + path, { headers })).text()
    await expect.poll(() => out.length).toBe(started + paths.length)
    const lines = out.slice(started).map((line) => line.replace(/^\S+Z /, '').replace(/ [\d.]+ ms$/, ''))
    expect(lines).toEqual([
      'GET /v1/streams/web%2F1 app 404',
      'GET /v1/access-tokens/(id) app 405',
      'GET (unknown) app 404',
      'GET (unknown) app 404',
      'GET /health app 200',
    ])
  })

  it('logs JSON, and nothing else on standard output', async () => {
    const { ready, out, err } = run([...NO_AUTH, '--log', 'json'])
    const url = await ready()
    const session = connect(url)
    onTestFinished(() => session.close())
    const request = session.request({ ':path': '/v1/basins', ':authority': 'app.localhost' })
    request.resume()
    await once(request, 'close')
    await expect.poll(() => out.length).toBe(1)
    expect(JSON.parse(out[0]!)).toEqual({
      time: expect.stringMatching(/Z$/),
      method: 'GET',
      path: '/v1/basins',
      basin: 'app',
      status: 200,
      ms: expect.any(Number),
    })
    expect(err[0]).toMatch(/^headwater listens on /)
  })
})
