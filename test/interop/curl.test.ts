// @module-tag slow

import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FrameDecoder } from '../../src/wire/frame.ts'
import { encodeMessageFrame } from '../../src/wire/session-frames.ts'
import { freshName, serviceOfFile, until } from './support.ts'

const { server, hw } = await serviceOfFile()
const { url, port } = server

function versionOfCurl(): string | undefined {
  try {
    return execFileSync('curl', ['--version'], { encoding: 'utf8' })
  } catch {
    return undefined
  }
}

const version = versionOfCurl()
const JSON_TYPE = ['-H', 'content-type: application/json']
const H2C = ['--http2-prior-knowledge']

interface Answer {
  readonly protocol: string
  readonly status: number
  readonly headers: Map<string, string>
  readonly bytes: Buffer
  readonly text: string
  /** The body as JSON. */
  json(): unknown
}

/** Runs `curl` until it exits. */
function curl(...args: string[]): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const all = ['--silent', '--show-error', '--include', '--max-time', '25', ...args]
    execFile('curl', all, { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 }, (error, stdout) => {
      if (error) reject(error)
      else resolve(answerOf(stdout))
    })
  })
}

function answerOf(output: Buffer): Answer {
  const end = output.indexOf('\r\n\r\n')
  const [status = '', ...lines] = output.subarray(0, end).toString().split('\r\n')
  const [protocol = '', code] = status.split(' ')
  const bytes = output.subarray(end + 4)
  const text = bytes.toString()
  const headers = lines.map((line) => {
    const [, name = '', value = ''] = /^([^:]*): *(.*)$/.exec(line) ?? []
    return [name.toLowerCase(), value] as const
  })
  return {
    protocol,
    status: Number(code),
    headers: new Map(headers),
    bytes,
    text,
    json: () => JSON.parse(text) as unknown,
  }
}

/** A basin with the stream `s`, and the arguments that address it. */
async function start() {
  const basin = freshName('basin')
  await hw.createBasin(basin)
  await hw.basin(basin).createStream('s', { timestamping: { uncapped: true } })
  const stream = hw.basin(basin).stream('s')
  const records = `${url}/v1/streams/s/records`
  const inBasin = ['-H', `svc-basin: ${basin}`]
  return { basin, stream, records, inBasin }
}

const absent = version === undefined ? ' (skipped: there is no curl on this machine)' : ''

describe.skipIf(version === undefined)(`curl${absent}`, () => {
  it('manages streams, with the basin by header or by host', async () => {
    const { basin, inBasin } = await start()
    const byHost = `http://${basin}.localhost:${port}/v1/streams`
    const resolve = ['--resolve', `${basin}.localhost:${port}:127.0.0.1`]
    const created = await curl(...resolve, byHost, ...JSON_TYPE, '-d', '{"stream":"a/b"}')
    expect([created.status, created.json()]).toMatchObject([201, { name: 'a/b' }])
    const ensured = await curl('-X', 'PUT', ...inBasin, `${url}/v1/streams/a%2Fb`)
    expect([ensured.status, ensured.headers.get('svc-provision-result')]).toEqual([200, 'noop'])
    const change = '{"storage_class":"standard"}'
    const patched = await curl(
      '-X',
      'PATCH',
      ...inBasin,
      `${url}/v1/streams/a%2Fb`,
      ...JSON_TYPE,
      '-d',
      change,
    )
    expect(patched.json()).toMatchObject({ storage_class: 'standard' })
    expect((await curl(...inBasin, `${url}/v1/streams/a%2Fb`)).json()).toEqual(patched.json())
    const list = await curl(...resolve, `${byHost}?prefix=a`)
    expect(list.json()).toMatchObject({ streams: [{ name: 'a/b' }], has_more: false })
    expect((await curl('-X', 'DELETE', ...inBasin, `${url}/v1/streams/a%2Fb`)).status).toBe(202)
    expect((await curl(...inBasin, `${url}/v1/streams/a%2Fb`)).status).toBe(404)
    expect((await curl(`${url}/v1/streams`)).json()).toMatchObject({ code: 'bad_header' })
  })

  it.each([
    ['HTTP/1.1', []],
    ['HTTP/2', H2C],
  ])('appends and reads batches by %s', async (protocol, version) => {
    const { records, inBasin } = await start()
    const call = (...args: string[]) => curl(...version, ...inBasin, ...args)
    const input = '{"records":[{"timestamp":1000,"body":"hello","headers":[["a","b"]]},{"timestamp":2000}]}'
    const ack = await call(records, ...JSON_TYPE, '-d', input)
    expect([ack.protocol, ack.status, ack.json()]).toEqual([
      protocol,
      200,
      {
        start: { seq_num: 0, timestamp: 1_000 },
        end: { seq_num: 2, timestamp: 2_000 },
        tail: { seq_num: 2, timestamp: 2_000 },
      },
    ])
    expect((await call(`${records}/tail`)).json()).toEqual({ tail: { seq_num: 2, timestamp: 2_000 } })
    const first = { seq_num: 0, timestamp: 1_000, headers: [['a', 'b']], body: 'hello' }
    const read = await call(`${records}?seq_num=0`)
    const tail = { seq_num: 2, timestamp: 2_000 }
    expect(read.json()).toEqual({ records: [first, { seq_num: 1, timestamp: 2_000 }], tail })
    const protobuf = await call('-H', 'accept: application/protobuf', `${records}?seq_num=0&count=1`)
    expect(protobuf.headers.get('content-type')).toBe('application/protobuf')
    expect(protobuf.bytes.includes('hello')).toBe(true)
  })

  it('reads events to their end', async () => {
    const { records, inBasin, stream } = await start()
    await stream.append([
      { body: 'a', timestamp: 7 },
      { body: 'b', timestamp: 8 },
    ])
    const events = await curl(...inBasin, '-H', 'accept: text/event-stream', `${records}?seq_num=0&count=10`)
    expect(events.headers.get('content-type')).toBe('text/event-stream')
    expect(events.text).toBe(
      'event: batch\nid: 1,2,18\ndata: {"records":[{"seq_num":0,"timestamp":7,"body":"a"},' +
        '{"seq_num":1,"timestamp":8,"body":"b"}],"tail":{"seq_num":2,"timestamp":8}}\n\ndata: [DONE]\n\n',
    )
    const resumed = await curl(
      ...[...inBasin, '-H', 'accept: text/event-stream', '-H', 'last-event-id: 0,1,9'],
      `${records}?seq_num=0&count=10`,
    )
    expect(resumed.text).toContain('id: 1,1,9\n')
  })

  it.each([
    ['HTTP/1.1', []],
    ['HTTP/2', H2C],
  ])('receives events live by %s', async (_, version) => {
    const { records, inBasin, stream } = await start()
    const args = ['-sN', ...version, ...inBasin, '-H', 'accept: text/event-stream', `${records}?seq_num=0`]
    const child = spawn('curl', args)
    onTestFinished(() => void child.kill())
    let received = ''
    child.stdout.on('data', (chunk: Buffer) => {
      received += chunk
    })
    await until(() =>
      /event: ping\ndata: {"timestamp":\d+,"tail":{"seq_num":0,"timestamp":0}}\n\n/.test(received),
    )
    for (const body of ['one', 'two', 'three']) {
      await stream.append(body)
      await until(() => received.includes(`"body":"${body}"`) && received.endsWith('\n\n'))
    }
    expect(received.match(/^event: batch$/gm)).toHaveLength(3)
    expect(hw.stats().openReads).toBe(1)
    const exited = once(child, 'exit')
    child.kill()
    await exited
    await until(() => hw.stats().openReads === 0)
  })

  it('appends and reads by binary sessions over HTTP/2', async () => {
    const { records, inBasin } = await start()
    // AppendInput { records: [{ body: 'hi' }] }
    const input = Uint8Array.of(0x0a, 4, 0x1a, 2, 0x68, 0x69)
    const frame = encodeMessageFrame(input)
    const session = [...H2C, ...inBasin, '-H', 'content-type: svcs/proto']
    const appending = spawn('curl', ['-sS', ...session, '--data-binary', '@-', records])
    appending.stdin.end(Buffer.concat([frame, frame]))
    const acks: Buffer[] = []
    appending.stdout.on('data', (chunk: Buffer) => acks.push(chunk))
    await once(appending, 'close')
    expect([...new FrameDecoder().decode(Buffer.concat(acks))].map(({ kind }) => kind)).toEqual([
      'message',
      'message',
    ])

    const read = await curl(...session, `${records}?seq_num=0&count=2`)
    expect([read.protocol, read.status]).toEqual(['HTTP/2', 200])
    expect(read.headers.get('content-type')).toBe('svcs/proto')
    const frames = [...new FrameDecoder().decode(read.bytes)]
    expect(frames.map(({ kind }) => kind)).toEqual(['message'])
    expect(read.bytes.toString('latin1').split('hi')).toHaveLength(3)
  })
})
