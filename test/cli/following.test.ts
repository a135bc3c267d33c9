import { expect, it, vi } from 'vitest'
import { byteOutput, resultOf, run, service } from './run.ts'

it('tail -f prints records as they are appended, until Ctrl+C', async () => {
  const { hw, world } = await service({ open: true })
  const stream = hw.basin('app', { autoCreate: true }).stream('s')
  await stream.append(['a', 'b', 'c'])
  const { output, lines } = byteOutput()
  const { signals, exitCode, err } = run(['tail', '-n', '2', '-f', 'app/s'], { ...world, output })
  await vi.waitUntil(() => lines().length === 2)
  await stream.append('d')
  await vi.waitUntil(() => lines().length === 3)
  signals.emit('SIGINT')
  expect(await exitCode).toBe(130)
  expect(lines()).toEqual(['b', 'c', 'd'])
  expect(err).toEqual([])
  expect(signals.eventNames()).toEqual([])
})

/** A server whose connections the test cuts, and an output that collects what is printed. */
async function cuttable() {
  const { hw, world } = await service({ open: true })
  const stream = hw.basin('app', { autoCreate: true }).stream('s')
  let cut = () => {}
  let isDown = false
  const reads: string[] = []
  const fetch = async (request: Request): Promise<Response> => {
    if (isDown) throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
    const response = await world.fetch(request)
    if (!request.url.includes('/records?')) return response
    reads.push(new URL(request.url).search)
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const control = new AbortController()
    cut = () => control.abort(new Error('socket hang up'))
    response.body!.pipeTo(writable, { signal: control.signal }).catch(() => {})
    return new Response(readable, response)
  }
  const { output, lines } = byteOutput()
  return {
    hw,
    stream,
    reads,
    world: { ...world, fetch, output },
    lines,
    cut: (stayDown = false) => {
      isDown = stayDown
      cut()
    },
    restore: () => {
      isDown = false
    },
  }
}

it('tail -f continues after a lost connection, without a gap or a repetition', async () => {
  const { stream, reads, world, lines, cut, restore } = await cuttable()
  await stream.append(['a', 'b', 'c'])
  const { signals, exitCode, err } = run(['tail', '-fn2', 'app/s'], world)
  await vi.waitUntil(() => lines().length === 2)
  cut(true)
  await vi.waitUntil(() => err.length === 1)
  await stream.append(['d', 'e'])
  restore()
  await vi.waitUntil(() => lines().length === 4)
  cut()
  await stream.append('f')
  await vi.waitUntil(() => lines().length === 5)
  signals.emit('SIGINT')
  expect(await exitCode).toBe(130)
  expect(lines()).toEqual(['b', 'c', 'd', 'e', 'f'])
  expect(reads.map((query) => new URLSearchParams(query).get('seq_num'))).toEqual([null, '1', '3', '5'])
  expect(err).toEqual([
    'headwater: cannot reach http://127.0.0.1:8787: socket hang up; reconnecting, Ctrl+C stops',
    'headwater: cannot reach http://127.0.0.1:8787: socket hang up; reconnecting, Ctrl+C stops',
  ])
})

it('tail -f fails if the server was never reached, or the stream is deleted meanwhile', async () => {
  const { hw, stream, world, lines, cut, restore } = await cuttable()
  const missing = await resultOf(['tail', '-f', 'app/s'])
  expect([missing.exitCode, missing.err]).toEqual([1, [expect.stringContaining('cannot reach')]])
  await stream.append('a')
  const { exitCode, err } = run(['tail', '-f', 'app/s'], world)
  await vi.waitUntil(() => lines().length === 1)
  cut(true)
  await vi.waitUntil(() => err.length === 1)
  await hw.basin('app').stream('s').delete()
  restore()
  expect(await exitCode).toBe(1)
  expect(err.at(-1)).toBe('headwater: the stream was deleted (stream_deleted)')
})
