// @module-tag slow

import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { encodeMessageFrame, FrameDecoder } from '../../src/wire/frame.ts'
import { freshName, serviceOfFile, until } from './support.ts'

const { server, hw } = await serviceOfFile()
const { url, port } = server

const JSON_TYPE = ['-H', 'content-type: application/json']
const EVENTS = ['-H', 'accept: text/event-stream']
const H2C = ['--http2-prior-knowledge']

function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'])
    return true
  } catch {
    return false
  }
}

/** Runs `curl` until it exits. */
function curl(...args: string[]): Promise<{ status: string; headers: string; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const all = ['--silent', '--show-error', '--include', '--max-time', '25', ...args]
    execFile('curl', all, { encoding: 'buffer' }, (error, output) => {
      if (error) return reject(error)
      const end = output.indexOf('\r\n\r\n')
      const [status = '', ...headers] = output.subarray(0, end).toString().split('\r\n')
      resolve({
        status: status.trim(),
        headers: headers.join('\n').toLowerCase(),
        body: output.subarray(end + 4),
      })
    })
  })
}

async function json(...args: string[]): Promise<unknown> {
  return JSON.parse((await curl(...args)).body.toString())
}

const absent = hasCurl() ? '' : ' (skipped: there is no curl on this machine)'

describe.skipIf(absent !== '').each([
  ['HTTP/1.1 200 OK', []],
  ['HTTP/2 200', H2C],
])(`curl: %s${absent}`, (ok, version) => {
  /** The arguments that address the stream `s` of a basin by the name of the host. */
  async function start() {
    const basin = freshName('basin')
    await hw.createBasin(basin)
    const stream = hw.basin(basin).stream('s')
    const host = `${basin}.localhost:${port}`
    const byHost = [...version, '--resolve', `${host}:127.0.0.1`]
    const input = '{"stream":"s","config":{"timestamping":{"uncapped":true}}}'
    const created = await json(...byHost, `http://${host}/v1/streams`, ...JSON_TYPE, '-d', input)
    expect(created).toMatchObject({ name: 's' })
    return { stream, call: [...version, '-H', `svc-basin: ${basin}`], records: `${url}/v1/streams/s/records` }
  }

  it('appends and reads batches, in JSON, protobuf and as events', async () => {
    const { call, records } = await start()
    const input = '{"records":[{"timestamp":1000,"body":"hello","headers":[["a","b"]]},{"timestamp":2000}]}'
    const tail = { seq_num: 2, timestamp: 2_000 }
    expect(await json(...call, records, ...JSON_TYPE, '-d', input)).toEqual({
      start: { seq_num: 0, timestamp: 1_000 },
      end: tail,
      tail,
    })
    const first = { seq_num: 0, timestamp: 1_000, headers: [['a', 'b']], body: 'hello' }
    expect(await json(...call, `${records}?seq_num=0`)).toEqual({
      records: [first, { seq_num: 1, timestamp: 2_000 }],
      tail,
    })
    const protobuf = await curl(...call, '-H', 'accept: application/protobuf', `${records}?seq_num=0&count=1`)
    expect(protobuf.status).toBe(ok)
    expect(protobuf.headers).toContain('content-type: application/protobuf')
    expect(protobuf.body.includes('hello')).toBe(true)
    const resumed = ['-H', 'last-event-id: 0,1,15']
    const events = await curl(...call, ...EVENTS, ...resumed, `${records}?seq_num=0&count=2`)
    expect(events.body.toString()).toBe(
      'event: batch\nid: 1,1,8\ndata: {"records":[{"seq_num":1,"timestamp":2000}],' +
        '"tail":{"seq_num":2,"timestamp":2000}}\n\ndata: [DONE]\n\n',
    )
  })

  it('receives events live', async () => {
    const { call, records, stream } = await start()
    const child = spawn('curl', ['-sN', ...call, ...EVENTS, `${records}?seq_num=0`])
    onTestFinished(() => void child.kill())
    let received = ''
    child.stdout.on('data', (chunk: Buffer) => {
      received += chunk
    })
    await until(() => /event: ping\ndata: .*\n\n/.test(received))
    for (const body of ['one', 'two', 'three']) {
      await stream.append(body)
      await until(() => received.includes(`"body":"${body}"`) && received.endsWith('\n\n'))
    }
    expect(received.match(/^event: batch$/gm)).toHaveLength(3)
    const exited = once(child, 'exit')
    child.kill()
    await exited
    await until(() => hw.stats().openReads === 0)
  })

  it('appends and reads by binary sessions', async () => {
    const { call, records } = await start()
    const session = [...call, '-H', 'content-type: svcs/proto']
    // AppendInput { records: [{ body: 'hi' }] }
    const frame = encodeMessageFrame(Uint8Array.of(0x0a, 4, 0x1a, 2, 0x68, 0x69))
    const appending = spawn('curl', ['-sS', ...session, '--data-binary', '@-', records])
    appending.stdin.end(Buffer.concat([frame, frame]))
    const acks: Buffer[] = []
    appending.stdout.on('data', (chunk: Buffer) => acks.push(chunk))
    await once(appending, 'close')
    const kindsOf = (bytes: Uint8Array) => [...new FrameDecoder().decode(bytes)].map(({ kind }) => kind)
    expect(kindsOf(Buffer.concat(acks))).toEqual(['message', 'message'])
    const read = await curl(...session, `${records}?seq_num=0&count=2`)
    expect(read.status).toBe(ok)
    expect(kindsOf(read.body)).toEqual(['message'])
    expect(read.body.toString('latin1').split('hi')).toHaveLength(3)
  })
})
