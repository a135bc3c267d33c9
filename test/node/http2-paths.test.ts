import { expect, test } from 'vitest'
import { BASIN, server } from './raw.ts'
import { http2Client, http2Fetch } from './support.ts'

test('HTTP/2 accepts raw UTF-8 and backslashes in :path, but no dot segments and fragments', async () => {
  const { url, hw, errors } = await server()
  const session = await http2Client(url)
  for (const [path, status] of [
    ['/v1/streams/é', 201],
    ['/v1/streams/x/../s', 400],
    ['/v1/streams/q#x', 400],
    ['/v1/streams/b\\c', 201],
  ] as const) {
    const { headers } = await http2Fetch(session, { ':method': 'PUT', ':path': path, 'svc-basin': BASIN })
    expect.soft([path, headers[':status']]).toEqual([path, status])
  }
  expect((await hw.basin(BASIN).listStreams()).items.map(({ name }) => name)).not.toContain('q')
  expect(errors).toEqual([])
})
