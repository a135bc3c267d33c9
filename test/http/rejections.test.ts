import { expect, test } from 'vitest'
import { REJECTED } from './rejected-requests.ts'
import { BASIN, type Service, startWithStream, tailOf } from './support.ts'

const ORIGIN = 'https://page.example'

async function contentOf(service: Service) {
  const { hw } = service
  const names = ({ items }: { items: readonly { name: string }[] }) => items.map(({ name }) => name)
  return {
    basins: names(await hw.listBasins()),
    streams: names(await hw.basin(BASIN).listStreams()),
    tokens: (await hw.listAccessTokens()).items,
    tail: await tailOf(service),
  }
}
const BEFORE = { basins: [BASIN], streams: ['s'], tokens: [], tail: 0 }

test.each(REJECTED.map((row) => [row[0].slice(0, 60), row[2], row[1], row] as const))(
  '%s with %s is %s, and has no effect',
  async (_, __, reply, [request, , , { headers, body }, part = '']) => {
    const service = await startWithStream({ cors: true })
    const [method, target] = request.split(' ') as [string, string]
    const { host = 'localhost', ...others } = headers
    const response = await service.call(method, target, {
      basin: null,
      origin: `http://${host}`,
      headers: { origin: ORIGIN, ...others },
      ...(body !== undefined && { body: typeof body === 'string' ? Buffer.from(body) : body }),
    })
    const text = await response.text()
    const [status, code] = reply.split(' ')
    expect([response.status, response.headers.get('content-type')]).toEqual([
      Number(status),
      'application/json',
    ])
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN)
    expect(text).toContain(part)
    if (code !== '') {
      expect(JSON.parse(text)).toEqual({ code, message: expect.any(String) })
      expect(text).not.toMatch(/node_modules|\/work\/|\bat \w+ \(|undefined|\[object|NaN/)
    }
    expect(await contentOf(service)).toEqual(BEFORE)
    expect(service.errors).toEqual([])
  },
)
