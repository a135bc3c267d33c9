// @module-tag slow

import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { optionalCiphers } from '../../adapters/cli/optional-ciphers.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { bundledAssets } from '../../scripts/bundled-assets.mjs'
import { open } from '../../src/index.ts'
import { run, testStorages } from './run.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const KEY = { 'svc-encryption-key': Buffer.alloc(32, 7).toString('base64') }
const ENCRYPTED = JSON.stringify({ config: { stream_cipher: 'aegis-256', create_stream_on_append: true } })

describe('headwater serve', () => {
  it.each([[[]], [['--storage', './here']]])(
    'supports aegis-256 if its package is installed: %j',
    async (options) => {
      const storages = testStorages()
      const { ready, err } = run(['serve', '--no-auth', '--port', '0', ...options], { storages })
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

describe('without aegis-256', () => {
  const notFound = Object.assign(new Error("Cannot find package 'libsodium-wrappers'"), {
    code: 'ERR_MODULE_NOT_FOUND',
  })
  it.each([
    ['its package is not installed', notFound, 'is not installed on the server', []],
    ['WebAssembly is forbidden', new Error('forbidden'), 'failed to start on the server', ['forbidden']],
  ])('because %s, the engine opens, and a request for it fails', async (_, error, problem, errors) => {
    const reported: string[] = []
    const ciphers = await optionalCiphers(
      (failure) => reported.push((failure as Error).message),
      () => Promise.reject(error),
    )
    const hw = await open({ storage: memory(), ciphers })
    const handler = createHandler(hw, { auth: 'none' })
    const put = (body: string) =>
      handler(new Request('http://there/v1/basins/my-basin', { method: 'PUT', headers: JSON_TYPE, body }))
    const refused = await put(ENCRYPTED)
    expect(refused.status).toBe(422)
    expect(await refused.json()).toEqual({
      code: 'invalid',
      message: `\`stream_cipher\` aegis-256 is not available: the package libsodium-wrappers ${problem}`,
    })
    // The cipher of the runtime still works.
    expect((await put(ENCRYPTED.replace('aegis-256', 'aes-256-gcm'))).status).toBe(201)
    expect(reported).toEqual(errors)
    await hw.close()
  })
})

it('the command starts without the package: it is imported only when an engine needs it', async () => {
  const { metafile } = await build({
    entryPoints: ['adapters/cli/main.ts'],
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    metafile: true,
    write: false,
    plugins: [bundledAssets],
  })
  const importsOf = (path: string, kind: string) =>
    (metafile.inputs[path]?.imports ?? []).filter((one) => one.kind === kind).map((one) => one.path)
  const started = new Set(['adapters/cli/main.ts', 'adapters/cli/optional-ciphers.ts'])
  for (const path of started) for (const target of importsOf(path, 'import-statement')) started.add(target)
  expect([...started].filter((path) => /aegis-256|libsodium/.test(path))).toEqual([])
  expect(new Set(importsOf('adapters/cli/optional-ciphers.ts', 'dynamic-import'))).toEqual(
    new Set(['adapters/aegis-256/index.ts']),
  )
})
