// @module-tag nightly

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { campaignOf } from '../harness/campaign.ts'

const MIB = 1_048_576
/** The default of `limits.readBufferBytes`, which may occupy three times as much: docs/limits.md. */
const BUDGET_BYTES = 256 * MIB
/** A connection with a session: docs/limits.md. */
const CONNECTION_BYTES = 65_536
const READERS = 10
/** More than a read has to deliver before it is preferred: docs/limits.md. */
const UNDER_WAY_BYTES = 10 * MIB

const campaign = campaignOf('stalled', { stalled: 300, mebibytes: 20 })
const { stalled, mebibytes } = campaign.options
const RECORD_BYTES = 65_536
const BATCH_RECORDS = 15
const BATCHES = Math.ceil((mebibytes * MIB) / (BATCH_RECORDS * RECORD_BYTES))
/** Of records; the events of a stream are slightly larger. */
const STREAM_BYTES = BATCHES * BATCH_RECORDS * RECORD_BYTES

/** `headwater serve` in a process of its own, with a stream of `mebibytes`. */
async function startServer(): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const program = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url))
  const child = spawn(process.execPath, [program, 'serve', '--storage', 'memory', '--no-auth', '--port', '0'])
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })
  const port = await new Promise<number>((resolve, reject) => {
    lines.on('line', (line) => {
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line)
      if (found !== null) resolve(Number(found[1]))
    })
    lines.on('close', () => reject(new Error('the server does not start')))
  })
  const url = `http://127.0.0.1:${port}/v1`
  const headers = { 'svc-basin': 'basin-stalled', 'content-type': 'application/json' }
  const put = { method: 'PUT', headers, body: '{}' }
  expect((await fetch(`${url}/basins/basin-stalled`, put)).status).toBe(201)
  expect((await fetch(`${url}/streams/stream`, put)).status).toBe(201)
  const body = JSON.stringify({
    records: Array.from({ length: BATCH_RECORDS }, () => ({ body: 'x'.repeat(RECORD_BYTES) })),
  })
  for (let count = 0; count < BATCHES; count++) {
    const append = await fetch(`${url}/streams/stream/records`, { method: 'POST', headers, body })
    expect(append.status).toBe(200)
  }
  return { port, child }
}

/** Requests the whole stream as server-sent events. */
function request(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  socket.write(
    'GET /v1/streams/stream/records?seq_num=0 HTTP/1.1\r\nhost: localhost\r\n' +
      'svc-basin: basin-stalled\r\naccept: text/event-stream\r\n\r\n',
  )
  return socket
}

/**
 * Returns the bytes that ten readers receive in a second, once each is under way and `meanwhile` was called.
 */
async function throughput(port: number, meanwhile = () => {}): Promise<number> {
  const sockets = Array.from({ length: READERS }, () => request(port))
  await Promise.all(sockets.map((socket) => received(socket, UNDER_WAY_BYTES)))
  meanwhile()
  const start = performance.now()
  await Promise.all(sockets.map((socket) => received(socket, STREAM_BYTES)))
  for (const socket of sockets) socket.destroy()
  return (READERS * (STREAM_BYTES - UNDER_WAY_BYTES) * 1_000) / (performance.now() - start)
}

/** Resolves when a client has read this many bytes. Rejects if its connection closes before. */
function received(socket: Socket, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.on('data', () => {
      if (socket.bytesRead >= bytes) resolve()
    })
    socket.on('close', () => reject(new Error(`the server ended a reader after ${socket.bytesRead} bytes`)))
  })
}

function memoryOf({ pid }: ChildProcess, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)![1]) * 1_024
}

it('keeps memory and throughput while many clients never read', {
  timeout: 300_000,
}, async () => {
  const { port, child } = await startServer()
  // The first readers warm the server up for those that are measured.
  if (campaign.runsAll) await throughput(port)
  const alone = await throughput(port)
  const before = memoryOf(child, 'VmRSS')

  const together = await throughput(port, () => {
    for (let client = 0; client < stalled; client++) request(port).pause()
  })
  const grown = memoryOf(child, 'VmHWM') - before
  const result = {
    'throughput alone, MiB/s': Math.round(alone / MIB),
    'with clients that never read': Math.round(together / MIB),
    'memory before, MiB': Math.round(before / MIB),
    'largest growth, MiB': Math.round(grown / MIB),
  }
  if (campaign.runsAll) console.log(`${stalled} clients that never read, ${READERS} that do:`, result)
  expect(grown).toBeLessThan(3 * BUDGET_BYTES + (stalled + READERS) * CONNECTION_BYTES)
  // A busy machine distorts short measurements.
  if (campaign.runsAll) expect(together / alone).toBeGreaterThan(2 / 3)
})
