import { buildSync } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { optionalCiphers } from '../../adapters/cli/optional-ciphers.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { directoryKind, memoryKind, run } from './run.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const KEY = { 'svc-encryption-key': Buffer.alloc(32, 7).toString('base64') }
const ENCRYPTED = JSON.stringify({ config: { stream_cipher: 'aegis-256', create_stream_on_append: true } })

describe('headwater serve', () => {
  it.each([[[]], [['--dir', 'here']]])(
    'has aegis-256 where its package is installed: %j',
    async (options) => {
      const storages = [memoryKind(), directoryKind()]
      const { ready, err } = run(['serve', '--open', '--port', '0', ...options], { storages })
      const url = await ready()
      const basin = { method: 'PUT', headers: JSON_TYPE, body: ENCRYPTED }
      expect((await fetch(`${url}/v1/basins/my-basin`, basin)).status).toBe(201)
      const records = `${url}/v1/streams/s/records`
      const headers = { ...JSON_TYPE, ...KEY, 'svc-basin': 'my-basin' }
      const body = JSON.stringify({ records: [{ body: 'hello' }] })
      expect((await fetch(records, { method: 'POST', headers, body })).status).toBe(200)
      const read = await fetch(`${records}?seq_num=0`, { headers })
      expect(await read.json()).toMatchObject({ records: [{ body: 'hello' }] })
      expect(err).toEqual([])
    },
  )
})

describe('where aegis-256 cannot be had', () => {
  const notFound = Object.assign(new Error("Cannot find package 'libsodium-wrappers'"), {
    code: 'ERR_MODULE_NOT_FOUND',
  })
  it.each([
    ['its package is not installed', notFound, 'is missing on the server', []],
    ['WebAssembly is forbidden', new Error('forbidden'), 'does not start on the server', ['forbidden']],
  ])('since %s, the server starts, and who asks for it is told', async (_, error, problem, errors) => {
    const told: string[] = []
    const ciphers = await optionalCiphers(
      (failure) => told.push((failure as Error).message),
      () => Promise.reject(error),
    )
    const hw = await open({ storage: memory(), ciphers })
    const handler = createHandler(hw, { open: true })
    const put = (body: string) =>
      handler(new Request('http://there/v1/basins/my-basin', { method: 'PUT', headers: JSON_TYPE, body }))
    const refused = await put(ENCRYPTED)
    expect(refused.status).toBe(422)
    expect(await refused.json()).toEqual({
      code: 'invalid',
      message: `stream_cipher aegis-256 is not available: the package libsodium-wrappers ${problem}`,
    })
    // The runtime's own is there.
    expect((await put(ENCRYPTED.replace('aegis-256', 'aes-256-gcm'))).status).toBe(201)
    expect(told).toEqual(errors)
    await hw.close()
  })
})

it('the command starts without the package: nothing imports it before an engine is opened', () => {
  const { metafile } = buildSync({
    entryPoints: ['adapters/cli/main.ts'],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
  })
  const importsOf = (path: string, kind: string) =>
    (metafile.inputs[path]?.imports ?? []).filter((one) => one.kind === kind).map((one) => one.path)
  const started = new Set(['adapters/cli/main.ts'])
  for (const path of started) for (const target of importsOf(path, 'import-statement')) started.add(target)
  expect([...started]).toContain('adapters/cli/optional-ciphers.ts')
  expect([...started].filter((path) => /aegis-256|libsodium/.test(path))).toEqual([])
  expect(importsOf('adapters/cli/optional-ciphers.ts', 'dynamic-import')).toEqual([
    'adapters/aegis-256/index.ts',
  ])
})
