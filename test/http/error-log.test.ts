import { inspect } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { BASIN, startWithStream } from './support.ts'

const TOKEN = 'secret-token'
const KEY = Buffer.alloc(32, 'secret-key').toString('base64')

function consoleErrors(): unknown[] {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => log.mockRestore())
  return log.mock.calls
}

async function request(getToken: () => Promise<string>): Promise<Response> {
  const { hw } = await startWithStream()
  const handler = createHandler(hw, { getToken })
  const headers = { authorization: `Bearer ${TOKEN}`, 'svc-encryption-key': KEY, 'svc-basin': BASIN }
  return handler(new Request(`http://localhost/v1/streams/s/records?token=${TOKEN}`, { headers }))
}

test('a response with status 500 is logged by default, without the headers and the query', async () => {
  const logged = consoleErrors()
  const failure = new HeadwaterError('storage', 'the disk failed', { cause: new Error('EIO') })
  expect((await request(() => Promise.reject(failure))).status).toBe(500)
  expect(logged).toEqual([[failure]])
  expect(inspect(logged)).not.toMatch(/secret|c2VjcmV0/)
})

test('other responses are not logged', async () => {
  const logged = consoleErrors()
  expect((await request(async () => TOKEN)).status).toBe(401)
  expect(logged).toEqual([])
})
