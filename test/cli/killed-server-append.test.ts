// @module-tag slow

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, connect as dial, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { killableServer } from './killable-server.ts'
import { ended, program } from './program.ts'

const headwater = program()
const lineOf = (index: number) => `line ${index}\n`

/** A proxy whose connections can be cut, and the responses to what they have sent with them. */
async function cuttingProxy(target: string) {
  const { port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = dial(Number(port), '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        // The server gets what was sent, and its response is lost.
        upstream.end()
        sockets.delete(socket)
      })
    }
    client.pipe(upstream)
    upstream.pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

it('a pipe goes on after kills of its server and cut connections, without loss or repetition', async () => {
  const server = await killableServer(headwater)
  const proxy = await cuttingProxy(server.url)
  const writer = headwater.start(['append', 'app/s', '--quiet'], { HEADWATER_URL: proxy.url })
  const end = ended(writer)
  const hw = await connect({ url: server.url, retries: 1_000 })
  onTestFinished(() => hw.close())
  const stream = hw.basin('app').stream('s')
  let written = 0
  const write = (count: number) => {
    for (let i = 0; i < count; i++) writer.stdin!.write(lineOf(written++))
  }
  const hasStored = (count: number) =>
    vi.waitUntil(async () => ((await stream.checkTail().catch(() => undefined))?.seqNum ?? 0) >= count)
  for (let round = 0; round < 3; round++) {
    write(1_000)
    await hasStored(written - 500)
    write(20_000)
    if (round === 1) proxy.cut()
    else {
      await server.kill()
      write(1_000)
      await server.start()
    }
    await hasStored(written - 500)
  }
  writer.stdin!.end()
  expect(await end).toMatchObject({ code: 0 })
  const bodies = (await stream.read().toArray()).map(({ body }) => body)
  expect(bodies.length).toBe(written)
  expect(bodies.every((body, index) => `${body}\n` === lineOf(index))).toBe(true)
})
