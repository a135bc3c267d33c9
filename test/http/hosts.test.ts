import { describe, expect, it } from 'vitest'
import { errorOf, startService } from './support.ts'

describe('a fetch handler', () => {
  it.each([
    ['any host by default, because it does not know its address', undefined, 'app.example', 200],
    ['the hosts of the option, in capitals and with a port', ['App.Example:8443'], 'app.example', 200],
    ['no other', ['app.example'], 'evil.example', 421],
  ] as const)('accepts %s: of %j, %s is %i', async (_, allowedHosts, host, status) => {
    const { call } = await startService(allowedHosts && { allowedHosts })
    expect((await call('GET', '/v1/basins', { origin: `http://${host}` })).status).toBe(status)
  })

  it('uses the header `host`, from which a framework may not have built the URL', async () => {
    const { call } = await startService({ allowedHosts: [] })
    const response = await call('GET', '/v1/basins', { headers: { host: 'evil.example' } })
    expect(await errorOf(response)).toMatchObject({ status: 421, code: 'misdirected_request' })
  })

  it('rejects a repeated header `host`', async () => {
    const { call } = await startService()
    const response = await call('GET', '/v1/basins', { headers: { host: 'localhost, localhost' } })
    expect(await errorOf(response)).toEqual({
      status: 400,
      code: 'bad_header',
      message: 'Invalid header `host`: the request has more than one',
    })
  })
})
