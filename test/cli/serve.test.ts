// @module-tag slow

import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { get as getSecurely } from 'node:https'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { wrapped } from '../support/index.ts'
import { listening } from '../support/listening.ts'
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

  const PAGE = 'https://page.example'
  it.each<[readonly string[], Record<string, string>, string, number]>([
    [['--no-auth'], { origin: PAGE }, '/v1/basins', 403],
    [['--no-auth', '--allow-origin', PAGE], { origin: PAGE }, '/v1/basins', 200],
    [['--no-auth', '--allow-origin', PAGE], { origin: 'https://other.example' }, '/v1/basins', 403],
    [['--no-auth', '--allow-origin', '*'], { origin: 'https://other.example' }, '/v1/basins', 200],
    [['--no-auth'], { host: 'a.internal' }, '/v1/basins', 421],
    [
      ['--no-auth', '--allowed-host', 'b.internal', '--allowed-host', 'a.internal'],
      { host: 'a.internal' },
      '/v1/basins',
      200,
    ],
    [[], {}, '/metrics', 401],
    [['--public-metrics'], {}, '/metrics', 200],
  ])('given %j, responds to a request with %j for %s with %i', async (args, headers, path, status) => {
    const { port } = new URL(await run(['serve', '--port', '0', ...args]).ready())
    const [response] = (await once(get({ port, path, headers, agent: false }), 'response')) as [
      IncomingMessage,
    ]
    response.resume()
    expect(response.statusCode).toBe(status)
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

  it.each([
    [
      'a port in use',
      (port: number) => ['--port', String(port)],
      'is already in use; choose another with `--port`',
    ],
    ['an address of another machine', () => ['--port', '0', '--host', '192.0.2.1'], 'EADDRNOTAVAIL'],
  ])('reports %s, closes the storage, and keeps the root token', async (_, options, message) => {
    const { port } = new URL(await listening(createServer()))
    const kept = memory()
    const hw = await open({ storage: kept })
    onTestFinished(() => hw.close())
    const token = (await hw.createRootToken())!
    const { storage, counts } = counted(kept)
    const args = ['serve', ...options(Number(port)), '--root-token', 'another-token-altogether']
    const { exitCode, err, signals } = run(args, { storages: testStorages({ storage }) })
    expect([await exitCode, err]).toEqual([1, [expect.stringContaining(message)]])
    expect(counts).toEqual({ opened: 1, closed: 1 })
    expect(signals.eventNames()).toEqual([])
    await expect(hw.as(token).listBasins()).resolves.toBeDefined()
    await expect(hw.as('another-token-altogether').listBasins()).rejects.toMatchObject({ code: 'authn' })
    const storages = testStorages({ storage: memory() })
    await run(['serve', ...options(Number(port))], { storages }).exitCode
    const next = run(['serve', '--port', '0'], { storages })
    await next.ready()
    expect(next.out.join('\n')).toContain('not shown again')
  })

  it('stops at a signal that comes while it starts', async () => {
    const { storage, counts } = counted(memory())
    const signals = new EventEmitter()
    const open: Storage['open'] = (context) => {
      signals.emit('SIGTERM')
      return storage.open(context)
    }
    const storages = testStorages({ storage: { manifest: storage.manifest, open } })
    expect(await run(NO_AUTH, { storages, signals }).exitCode).toBe(0)
    expect(counts).toEqual({ opened: 1, closed: 1 })
  })

  it('reports why a storage does not open', async () => {
    const gone = () => Promise.reject(new StorageFailure('io', 'the disk is gone', { nothingWritten: true }))
    const storage = { manifest: memory().manifest, open: gone }
    const { exitCode, err } = run(NO_AUTH, { storages: testStorages({ storage }) })
    expect(await exitCode).toBe(1)
    expect(err).toEqual(['headwater: the storage cannot be opened: the disk is gone'])
  })

  it('prints internal errors', async () => {
    const broken = () =>
      Promise.reject(new StorageFailure('io', 'broken \u001b[2J', { nothingWritten: true }))
    const storage = wrapped(memory(), {}, () => ({ list: broken }))
    const { ready, err } = run(NO_AUTH, { storages: testStorages({ storage }) })
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
    [CERT, './missing.pem', 'cannot read `./missing.pem`: ENOENT'],
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
