import { Readable } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { byteOutput, resultOf, run } from './run.ts'

/** A server with the stream `app/s` that accepts one header prefix. */
async function server(headerPrefix: string) {
  const hw = await open({ storage: memory() })
  await hw.createBasin('app')
  await hw.basin('app').createStream('s')
  const node = await serve(hw, { auth: 'none', port: 0, headerPrefixes: [headerPrefix] })
  onTestFinished(async () => {
    await node.close({ graceMs: 0 })
    await hw.close()
  })
  const sent: string[] = []
  const fetch: CliContext['fetch'] = (request) => {
    sent.push(request.method)
    return globalThis.fetch(request)
  }
  const env = { HEADWATER_URL: node.url }
  return { hw, stream: hw.basin('app').stream('s'), sent, world: { fetch, env } }
}

it.each([
  ['svc', 'HTTP/2', true],
  ['s2', 'HTTP/2', true],
  ['svc', 'fetch', false],
  ['s2', 'fetch', false],
])('append to a server with the header prefix %s works over %s', async (prefix, _, http2) => {
  const { stream, sent, world } = await server(prefix)
  const lines = new Array(3).fill(`${'x'.repeat(599_999)}\n`)
  const input = () => Readable.from(lines.map((line) => Buffer.from(line)))
  const { exitCode, err } = await resultOf(['append', 'app/s'], { ...world, http2, input })
  expect([exitCode, err]).toEqual([0, ['Appended 3 records to app/s: sequence number 0 to 2']])
  // Sessions over HTTP/2 do not use `fetch`.
  expect(sent.filter((method) => method === 'POST')).toHaveLength(http2 ? 0 : 3)
  expect(await stream.checkTail()).toMatchObject({ seqNum: 3 })
})

it.each(['svc', 's2'])('read accepts a server with the header prefix %s', async (prefix) => {
  const { stream, world } = await server(prefix)
  const read = async (...options: string[]) => {
    const { output, lines } = byteOutput()
    const { exitCode, err } = await resultOf(['read', 'app/s', ...options], { ...world, output })
    return { exitCode, err, lines: lines() }
  }
  expect(await read()).toEqual({ exitCode: 0, err: [], lines: [] })
  await stream.append(['a', 'b'])
  expect(await read()).toEqual({ exitCode: 0, err: [], lines: ['a', 'b'] })
  const beyond = 'headwater: no record is available at the requested start (range_not_satisfiable)'
  expect(await read('--seq-num', '9')).toEqual({ exitCode: 1, err: [beyond], lines: [] })
})

it.each(['svc', 's2'])('tail -f follows a server with the header prefix %s', async (prefix) => {
  const { hw, stream, world } = await server(prefix)
  const { output, lines } = byteOutput()
  const { exitCode, err, signals } = run(['tail', '-f', 'app/s'], { ...world, output })
  await vi.waitUntil(() => hw.stats().openReads === 1)
  await stream.append('a')
  await vi.waitUntil(() => lines().length === 1)
  signals.emit('SIGINT')
  expect([await exitCode, err, lines()]).toEqual([130, [], ['a']])
})
