import { describe, expect, it } from 'vitest'
import { errorOf, startService } from './support.ts'

const status = async (response: Promise<Response>) => (await response).status

describe('a fetch handler', () => {
  it('accepts any host by default, because it does not know its address', async () => {
    const { call } = await startService()
    expect(await status(call('GET', '/v1/basins', { origin: 'http://app.example' }))).toBe(200)
  })

  it('accepts only the hosts of the option `allowedHosts`, localhost and addresses', async () => {
    const { call } = await startService({ allowedHosts: ['app.example'] })
    const at = (origin: string) => call('GET', '/v1/basins', { origin })
    for (const host of ['app.example', 'app.example.:80', 'x.localhost', '10.0.0.1', '[::1]:80'])
      expect(await status(at(`http://${host}`))).toBe(200)
    const error = await errorOf(await at('https://evil.example'))
    expect(error).toMatchObject({ status: 421, code: 'misdirected_request' })
  })

  it('uses the header `host`, from which a framework may not have built the URL', async () => {
    const { call } = await startService({ allowedHosts: [] })
    expect(await status(call('GET', '/v1/basins', { headers: { host: 'evil.example' } }))).toBe(421)
  })

  it.each(['localhost, evil.example', 'localhost, localhost'])(
    'rejects a repeated header `host`: %s',
    async (host) => {
      const { call } = await startService()
      const error = await errorOf(await call('GET', '/v1/basins', { headers: { host } }))
      expect(error).toEqual({
        status: 400,
        code: 'bad_header',
        message: 'Invalid header `host`: the request has more than one',
      })
    },
  )

  it('accepts allowed hosts in capitals and with a port', async () => {
    const { call } = await startService({ allowedHosts: ['App.Example:8443'] })
    expect(await status(call('GET', '/v1/basins', { origin: 'http://app.example' }))).toBe(200)
  })
})
