import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/index.ts'
import { byteOutput, fakeTerminal, resultOf, run, service } from './run.ts'
import { TARGETS } from './targets.ts'

const DONE = { exitCode: 0, out: [], err: [] }

describe.each(TARGETS)('on %s', (_, makeTarget, retention) => {
  it('append creates a missing basin and stream, reports it, and appends the lines of its input', async () => {
    const { command } = await makeTarget()
    expect(await command('append app-logs/web/1', 'one\ntwo\n\nthree')).toMatchObject({
      exitCode: 0,
      out: [],
      err: [
        'Created basin app-logs',
        `Created stream app-logs/web/1; it keeps records ${retention.text}`,
        'Appended 4 records to app-logs/web/1: sequence number 0 to 3',
      ],
    })
    expect((await command('append app-logs/web/1', 'four\n')).err).toEqual([
      'Appended 1 record to app-logs/web/1: sequence number 4',
    ])
    expect(await command('read app-logs/web/1')).toEqual({
      ...DONE,
      written: ['one', 'two', '', 'three', 'four'],
    })
  })

  it('append creates nothing with --no-create', async () => {
    const { command } = await makeTarget()
    const hint = 'create it with `headwater create`, or omit `--no-create`'
    expect((await command('append a/b text --no-create')).err).toEqual([
      `headwater: basin a does not exist; ${hint}`,
    ])
    await command('create a')
    expect(await command('append a/b text --no-create')).toMatchObject({
      exitCode: 1,
      err: [`headwater: stream a/b does not exist; ${hint}`],
    })
    await command('create a/b')
    expect((await command('append a/b text --no-create --quiet')).exitCode).toBe(0)
  })

  it('append preserves bytes, and adds headers to every record', async () => {
    const { command } = await makeTarget()
    const input = Buffer.from([0xff, 0x00, 0x0d, 0x41, 0x0a])
    const headers = ['--header', 'level: info', '--header=a:b:c']
    await command(['append', 'a/b', ...headers], input)
    const [line] = (await command('read a/b --json --base64')).written
    expect(JSON.parse(line!)).toMatchObject({
      seq_num: 0,
      headers: [
        [base64('level'), base64('info')],
        [base64('a'), base64('b:c')],
      ],
      body: Buffer.from([0xff, 0x00, 0x0d, 0x41]).toString('base64'),
    })
  })

  it('append joins lines that arrive in pieces, and splits batches at their limits', async () => {
    const { command } = await makeTarget()
    const long = 'x'.repeat(700_000)
    const lines = [...Array.from({ length: 2_500 }, (_, i) => `line ${i}`), long, long, 'end']
    const bytes = Buffer.from(lines.join('\n'))
    const pieces: Buffer[] = []
    for (let start = 0; start < bytes.length; start += 99_991)
      pieces.push(bytes.subarray(start, start + 99_991))
    expect((await command('append a/b', pieces)).err.at(-1)).toBe(
      'Appended 2,503 records to a/b: sequence number 0 to 2502',
    )
    expect((await command('read a/b')).written).toEqual(lines)
  })

  it('append accepts JSON, and prints the ack', async () => {
    const { command } = await makeTarget()
    const records = '{"body":"ü","headers":[["k","v"]],"timestamp":5}\n{"seq_num":7,"body":"x"}\n'
    const { out } = await command('append a/b --json', records)
    expect(JSON.parse(out[0]!)).toMatchObject({ start: { seq_num: 0, timestamp: 5 }, end: { seq_num: 2 } })
    const { written } = await command('read a/b --json')
    expect(written.map((line) => JSON.parse(line))).toMatchObject([
      { seq_num: 0, timestamp: 5, headers: [['k', 'v']], body: 'ü' },
      { seq_num: 1, headers: [], body: 'x' },
    ])
  })

  it('append copies a stream with base64', async () => {
    const { command } = await makeTarget()
    await command('append a/b', Buffer.from([0xfe, 0x0a, 0x00]))
    const { written } = await command('read a/b --json --base64')
    await command('append a/c --json --base64', `${written.join('\n')}\n`)
    expect((await command('read a/c --json --base64')).written).toEqual(written)
  })

  it.each([
    ['{"body":1}', 'line 1: `body` must be a string'],
    ['{"body":"a"}\n{"body":', 'line 2: invalid JSON'],
    ['{"body":"a"},{"body":"b"}', 'line 1: expected one JSON object'],
    ['{"headers":[["",""],["a","b"]]}', 'line 1: invalid header'],
  ])('append rejects the JSON line %j', async (line, message) => {
    const { command } = await makeTarget()
    const { exitCode, err } = await command('append a/b --json', `${line}\n`)
    expect([exitCode, err.at(-1)]).toEqual([1, expect.stringContaining(message)])
  })

  it('append names the argument and the position of invalid JSON', async () => {
    const { command } = await makeTarget()
    const { exitCode, err } = await command(['append', 'a/b', 'zz', '--json'])
    expect([exitCode, err.at(-1)]).toEqual([
      1,
      'headwater: TEXT: invalid JSON: unexpected character at character 0',
    ])
  })

  it('append rejects a line that no record can hold, and reports what it has appended', async () => {
    const { command } = await makeTarget()
    await command('create a')
    await command('create a/b')
    const { exitCode, err } = await command('append a/b', [
      Buffer.from('one\n'),
      Buffer.alloc(1_048_577, 120),
    ])
    expect([exitCode, err]).toEqual([
      1,
      [
        'Appended 1 record to a/b: sequence number 0, before it stopped',
        'headwater: line 2 is longer than 1,048,568 bytes',
      ],
    ])
    expect((await command('read a/b')).written).toEqual(['one'])
  })

  it('append reads a file', async () => {
    const { command } = await makeTarget()
    expect((await command(['append', 'a/b', '--file', 'package.json'])).exitCode).toBe(0)
    expect(JSON.parse((await command('read a/b')).written.join('\n'))).toMatchObject({ name: 'headwater' })
    expect((await command('append a/b --file ./missing')).err.at(-1)).toBe(
      'headwater: file `./missing` does not exist',
    )
    expect((await command('append a/b --file ./test')).err.at(-1)).toBe('headwater: `./test` is a directory')
  })

  it('append shows its progress, with rate and remaining time, only on a terminal', async () => {
    const { options, world } = await makeTarget()
    const { terminal, drawn } = fakeTerminal()
    const args = ['append', 'a/b', ...options, '--file', 'package.json']
    expect((await resultOf([...args, '--quiet'], { ...world, terminal })).exitCode).toBe(0)
    expect(drawn()).toBe('')
    expect((await resultOf(args, { ...world, terminal })).exitCode).toBe(0)
    expect(drawn()).toMatch(/Appending .*KiB.*\/s .*ETA .*records/)
  })

  it('append fails with the wrong fencing token, after fence has set another one', async () => {
    const { command } = await makeTarget()
    await command('append a/b one')
    expect((await command('fence a/b owner')).err).toEqual([
      'Set the fencing token of a/b; the command has sequence number 1',
    ])
    const { exitCode, err } = await command('append a/b two --fencing-token other')
    expect([exitCode, err.at(-1)]).toEqual([1, expect.stringContaining('(fencing_token_mismatch)')])
    expect((await command('append a/b two --fencing-token owner')).exitCode).toBe(0)
    expect((await command(['fence', 'a/b', '', '--fencing-token', 'owner'])).err).toEqual([
      'Cleared the fencing token of a/b; the command has sequence number 3',
    ])
  })

  it('read starts and ends at the given positions', async () => {
    const { command } = await makeTarget()
    const lines = Array.from({ length: 10 }, (_, i) => `{"body":"${i}","timestamp":${1000 + i}}`)
    await command('append a/b --json', lines.join('\n'))
    const read = async (options: string) => (await command(`read a/b ${options}`)).written.join('')
    expect(await read('--seq-num 7')).toBe('789')
    expect(await read('--timestamp 1008')).toBe('89')
    expect(await read('--tail-offset 3 --count 2')).toBe('78')
    expect(await read('--until 1002')).toBe('01')
    expect(await read('--bytes 20')).toBe('01')
    expect(await read('--seq-num 10')).toBe('')
    expect(await read('--count 0')).toBe('')
    expect(await read('--follow --count 10')).toBe('0123456789')
    expect((await command('tail -n 2 a/b')).written).toEqual(['8', '9'])
    expect((await command('tail -n2 a/b')).written).toEqual(['8', '9'])
    expect((await command('tail -n 0 a/b')).written).toEqual([])
    const { exitCode, err } = await command('read a/b --seq-num 11')
    expect([exitCode, err]).toEqual([1, [expect.stringContaining('(range_not_satisfiable)')]])
  })

  it('read and tail of an empty stream print nothing', async () => {
    const { command } = await makeTarget()
    await command('create a')
    await command('create a/b')
    for (const words of ['read a/b', 'read a/b --count 5', 'tail a/b']) {
      expect(await command(words)).toEqual({ ...DONE, written: [] })
    }
  })

  it('trim removes records; read prints commands only with --commands', async () => {
    let aheadMs = 0
    const { command } = await makeTarget({ ...systemClock, now: () => systemClock.now() + aheadMs })
    await command('append a/b', '0\n1\n2\n')
    const { out } = await command('trim a/b 2 --json')
    expect(JSON.parse(out[0]!)).toMatchObject({ start: { seq_num: 3 } })
    aheadMs = 10_000
    expect((await command('read a/b')).written).toEqual(['2'])
    const commands = (await command('read a/b --json --commands')).written.map(
      (line) => JSON.parse(line).headers,
    )
    expect(commands).toEqual([[], [['', 'trim']]])
    const { exitCode, err } = await command('trim a/b 3 --match-seq-num 3')
    expect([exitCode, err]).toEqual([1, [expect.stringContaining('(seq_num_mismatch)')]])
  })

  it('check-tail prints the tail', async () => {
    const { command } = await makeTarget()
    await command('append a/b --json', '{"timestamp":1500}')
    expect((await command('check-tail a/b')).out).toEqual(['1  1970-01-01T00:00:01.5Z'])
    expect((await command('check-tail a/b --json')).out).toEqual(['{"seq_num":1,"timestamp":1500}'])
  })

  it('encrypted streams need the key', async () => {
    const { command } = await makeTarget()
    const key = ['--encryption-key', Buffer.alloc(32, 7).toString('base64')]
    await command('create secret --cipher aes-256-gcm')
    expect((await command(['append', 'secret/s', 'hidden', ...key])).exitCode).toBe(0)
    expect((await command(['read', 'secret/s', ...key])).written).toEqual(['hidden'])
    const { exitCode, err } = await command('read secret/s')
    expect([exitCode, err]).toEqual([1, [expect.stringContaining('key')]])
    expect((await command('read secret/s --encryption-key x')).exitCode).toBe(2)
  })

  it('bench measures, and deletes its stream', async () => {
    const { command } = await makeTarget()
    const { exitCode, out } = await command('bench --records 250 --size 10 --batch 100 --json')
    expect(exitCode).toBe(0)
    expect(JSON.parse(out[0]!)).toMatchObject({
      records: 250,
      size: 10,
      batch: 100,
      append: { seconds: expect.any(Number), p50_ms: expect.any(Number), p99_ms: expect.any(Number) },
      read: { seconds: expect.any(Number) },
      follow: { p50_ms: expect.any(Number), p99_ms: expect.any(Number) },
    })
    expect((await command('bench --records 1')).out.map((line) => line.split(' ')[0])).toEqual([
      'append',
      'read',
      'follow',
    ])
    expect((await command('ls')).out).toEqual([])
  })
})

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

describe('with a server', () => {
  it('append relies on the basin for creation if its token may not create', async () => {
    const { hw, world } = await service()
    await hw.createBasin('shared', { createStreamOnAppend: true })
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['append', 'read'] } as const
    const token = await hw.issueAccessToken({ id: 'writer', scope })
    const env = { HEADWATER_TOKEN: token, HEADWATER_URL: 'http://somewhere', HEADWATER_BASIN: 'shared' }
    const { exitCode, err } = await resultOf(['append', '/s', 'text'], { ...world, env })
    expect([exitCode, err]).toEqual([0, ['Appended 1 record to shared/s: sequence number 0']])
  })

  it('tail -f prints records as they are appended, until Ctrl+C', async () => {
    const { hw, world } = await service({ open: true })
    const stream = hw.basin('app', { autoCreate: true }).stream('s')
    await stream.append(['a', 'b', 'c'])
    const written: string[] = []
    const { signals, exitCode, err } = run(['tail', '-n', '2', '-f', 'app/s'], {
      ...world,
      output: () =>
        Object.assign(new (class extends EventTarget {})(), {
          on() {},
          off() {},
          write(bytes: Uint8Array, done: () => void) {
            written.push(Buffer.from(bytes).toString())
            if (written.join('') === 'b\nc\n') void stream.append('d')
            if (written.join('') === 'b\nc\nd\n') signals.emit('SIGINT')
            done()
          },
        }) as unknown as NodeJS.WritableStream,
    })
    expect(await exitCode).toBe(130)
    expect(written.join('')).toBe('b\nc\nd\n')
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

  it('read -f --count reads the rest after a lost connection', async () => {
    const { stream, world, lines, cut } = await cuttable()
    await stream.append(['a', 'b'])
    const { exitCode } = run(['read', '-f', '--count', '4', 'app/s'], world)
    await vi.waitUntil(() => lines().length === 2)
    cut()
    await stream.append(['c', 'd', 'e'])
    expect(await exitCode).toBe(0)
    expect(lines()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('tail -n 0 -f prints the records that were appended while the connection was lost', async () => {
    const { stream, reads, world, lines, cut } = await cuttable()
    await stream.append('old')
    const { signals, exitCode } = run(['tail', '-n', '0', '-f', 'app/s'], world)
    await vi.waitUntil(() => reads.length === 1)
    cut()
    await stream.append('new')
    await vi.waitUntil(() => lines().length === 1)
    signals.emit('SIGTERM')
    expect([await exitCode, lines()]).toEqual([143, ['new']])
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
})
