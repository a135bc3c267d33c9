import { expect, test } from 'vitest'
import { startService } from './support.ts'

test.each(['/health', '/ping'])(
  '%s returns OK while the engine is open, and 503 once it is closed',
  async (path) => {
    const { call, hw } = await startService({ auth: 'token' })
    const healthy = await call('GET', path)
    expect([healthy.status, await healthy.text()]).toEqual([200, 'OK'])
    expect(healthy.headers.get('content-type')).toContain('text/plain')
    const head = await call('HEAD', path)
    expect([head.status, await head.text()]).toEqual([200, ''])
    await hw.close()
    const closed = await call('GET', path)
    expect([closed.status, await closed.text()]).toEqual([503, 'the storage is closed'])
  },
)
