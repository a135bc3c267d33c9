import { describe, expect, it } from 'vitest'
import { lazyCipher } from '../../adapters/cli/storage.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { run } from './run.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const KEY = { 'svc-encryption-key': Buffer.alloc(32, 7).toString('base64') }
const ENCRYPTED = JSON.stringify({ config: { stream_cipher: 'aegis-256', create_stream_on_append: true } })

describe('headwater serve', () => {
  it('supports aegis-256 if its package is installed', { tags: ['slow'] }, async () => {
    const { ready, err } = run(['serve', '--no-auth', '--port', '0'])
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
  })
})

it('opens without the package of aegis-256, and rejects a request for that cipher', async () => {
  const cipher = lazyCipher(() => {
    throw new Error("Cannot find module 'libsodium-wrappers'")
  })
  const hw = await open({ storage: memory(), ciphers: [cipher] })
  const handler = createHandler(hw, { auth: 'none' })
  const put = (body: string) =>
    handler(new Request('http://there/v1/basins/my-basin', { method: 'PUT', headers: JSON_TYPE, body }))
  const refused = await put(ENCRYPTED)
  expect(refused.status).toBe(422)
  expect(await refused.json()).toEqual({
    code: 'invalid',
    message: '`stream_cipher` aegis-256 is not available: the package libsodium-wrappers is not installed',
  })
  // The cipher of the runtime still works.
  expect((await put(ENCRYPTED.replace('aegis-256', 'aes-256-gcm'))).status).toBe(201)
  await hw.close()
})
