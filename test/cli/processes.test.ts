// @module-tag slow

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { deferred } from '../support/deferred.ts'
import { contentOf } from '../transfer/support.ts'
import { ended, program } from './program.ts'

const headwater = program()
const at = (name: string) => join(headwater.directory, name)

/** Runs a shell script in the directory of the test. It calls the program as `headwater`. */
async function shell(
  script: string,
  env: Readonly<Record<string, string>> = {},
  [command, ...args]: readonly [string, ...string[]] = ['bash', '--norc'],
) {
  const body = `headwater() { "${process.execPath}" "${at('main.mjs')}" "$@"; }\n${script}`
  const options = { cwd: headwater.directory, env: { PATH: process.env.PATH, ...env } }
  return promisify(execFile)(command, [...args, '-c', body], options).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) =>
      ({ code, stdout, stderr }) as { code: number; stdout: string; stderr: string },
  )
}

/** Collects garbage before the command receives a signal. */
const COLLECT_GARBAGE = `
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => collect())
`

/** The configuration of a stream, and its tail. */
const BODY = JSON.stringify({ retention_policy: { infinite: {} }, tail: { seq_num: 0, timestamp: 0 } })

/** Starts a server that responds to requests of one method, and to no others. Resolves to its URL. */
async function silentServer(respondsTo: string, onSilence: () => void): Promise<string> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === respondsTo) response.setHeader('content-type', 'application/json').end(BODY)
    else onSilence()
  }
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Starts `serve` on a free port, and resolves to its URL. */
async function serve(...options: string[]): Promise<string> {
  const child = headwater.start(['serve', '--port', '0', '--no-auth', ...options])
  onTestFinished(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  })
  for await (const chunk of child.stdout!) {
    const url = /http:\S+/.exec(String(chunk))?.[0]
    if (url !== undefined) {
      child.stdout!.resume()
      return url
    }
  }
  throw new Error('it ended')
}

describe.skipIf(process.platform === 'win32' /* it has no bash and no signals */)('in a shell', () => {
  it('appends a pipe, and reads until the reader of a pipe has enough', async () => {
    const append = 'seq 20000 | headwater append app/s --storage ./piped'
    expect(await shell(append)).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'Created basin app\nCreated stream app/s; it keeps records forever\n' +
        'Appended 20,000 records to app/s: sequence number 0 to 19999\n',
    })
    const read = 'set -o pipefail; headwater read app/s --storage ./piped'
    expect((await shell(`${read} | sha256sum`)).stdout).toBe((await shell('seq 20000 | sha256sum')).stdout)
    expect(await shell(`${read} | head -n 2`)).toEqual({ code: 0, stdout: '1\n2\n', stderr: '' })
    expect(await shell(`${read} > all; tail -n 1 all`)).toEqual({ code: 0, stdout: '20000\n', stderr: '' })
    expect((await shell(`${read} > /dev/full`)).stderr).toMatch(
      /^headwater: cannot write to standard output: ENOSPC/,
    )
  })

  it('appends lines before the input ends, and a follower prints them at once', async () => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const env = { HEADWATER_URL, HEADWATER_BASIN: 'app' }
    await shell('headwater create app && headwater create /s', env)
    const follower = headwater.start(['tail', '-f', '/s'], env)
    const writer = headwater.start(['append', '/s'], env)
    const followed = followLines(follower.stdout!)
    writer.stdin!.write('one\n')
    expect(await followed.next()).toBe('one')
    writer.stdin!.write('two\nthree')
    expect(await followed.next()).toBe('two')
    writer.stdin!.end()
    expect(await followed.next()).toBe('three')
    const written = ended(writer)
    follower.kill('SIGINT')
    const [code] = await once(follower, 'exit')
    expect(code).toBe(130)
    expect(await written).toMatchObject({ code: 0 })
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('append stops at %s, keeps what it has read, and exits with %i', async (signal, expected) => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const writer = headwater.start(['append', 'app/s'], { HEADWATER_URL })
    const output = ended(writer)
    writer.stdin!.write('one\ntwo')
    const isDurable = 'until headwater check-tail app/s 2> /dev/null | grep -q "^1 "; do :; done'
    await shell(isDurable, { HEADWATER_URL })
    writer.kill(signal)
    const { code, err } = await output
    expect(code).toBe(expected)
    expect(err).toContain('Appended 1 record to app/s: sequence number 0, before it stopped\n')
    expect((await shell('headwater read app/s', { HEADWATER_URL })).stdout).toBe('one\n')
  })

  it('a server continues when the reader of its log exits', async () => {
    const child = headwater.start([
      'serve',
      '--port',
      '0',
      '--no-auth',
      '--storage',
      'memory',
      '--log',
      'text',
    ])
    const end = ended(child)
    let printed = ''
    child.stdout!.on('data', (chunk) => {
      printed += String(chunk)
    })
    await expect.poll(() => printed).toContain('Press Ctrl+C')
    child.stdout!.destroy()
    const url = /http:\S+/.exec(printed)![0]
    for (let requests = 0; requests < 4; requests++) expect((await fetch(`${url}/health`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await end).toMatchObject({ code: 0, err: '' })
  })

  it('a follower ends with the next record after the reader of its pipe exits', async () => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const script = `headwater append app/s one --quiet 2> /dev/null
        for i in 1 2 3 4 5 6; do headwater append app/s "$i" > /dev/null 2>&1; done &
        headwater tail -f app/s | head -n 1; exit \${PIPESTATUS[0]}`
    expect(await shell(script, { HEADWATER_URL })).toMatchObject({ code: 0, stdout: 'one\n' })
  })

  const ZSH = 'autoload -U compinit bashcompinit && compinit -u -D && bashcompinit'

  const isInstalled = (name: string) =>
    process.env.PATH!.split(':').some((folder) => existsSync(join(folder, name)))
  for (const [name, prepare, command] of [
    ['bash', '', ['bash', '--norc']],
    ['zsh', ZSH, ['zsh', '-f']],
  ] as const) {
    it.skipIf(!isInstalled(name) /* not every machine has zsh */)(`completes in ${name}`, async () => {
      const complete = async (...words: string[]) => {
        const quoted = words.map((word) => `'${word}'`).join(' ')
        const script = `${prepare}
        eval "$(headwater completion)"
        COMP_WORDS=(headwater ${quoted}); COMP_CWORD=${words.length}
        _headwater; echo "\${COMPREPLY[@]}"`
        return (await shell(script, {}, command)).stdout.trim().split(' ')
      }
      expect(await complete('app')).toEqual(['append', 'apply'])
      expect(await complete('token', '')).toEqual(['issue', 'list', 'revoke'])
      expect(await complete('token', 'issue', 'ci', '--op')).toEqual(['--ops', '--op-groups'])
      expect(await complete('append', 'a/b', '--no')).toEqual(['--no-create'])
      expect(await complete('ls', '--ur')).toEqual(['--url'])
      expect(await complete('serve', '--log', 'j')).toEqual(['json'])
      expect(await complete('import', '$(touch evaluated)', '')).toEqual([''])
      expect(existsSync(at('evaluated'))).toBe(false)
    })
  }

  it('bench removes its basin after Ctrl+C', async () => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const bench = headwater.start(['bench', '--duration', '1d', '--url', HEADWATER_URL])
    const output = ended(bench)
    await shell('until headwater ls | grep -q bench; do :; done', { HEADWATER_URL })
    bench.kill('SIGINT')
    expect(await output).toMatchObject({ code: 130, err: '' })
    expect((await shell('headwater ls', { HEADWATER_URL })).stdout).toBe('')
  })

  it.each([
    ['append app/s text', 'SIGINT', 'GET', 130],
    ['export', 'SIGTERM', 'POST', 143],
  ] as const)(
    'a server that does not respond does not keep `%s` alive after %s',
    async (command, signal, respondsTo, code) => {
      const onSilence = deferred<void>()
      const url = await silentServer(respondsTo, onSilence.resolve)
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(COLLECT_GARBAGE)}`
      const child = headwater.start([...command.split(' '), '--url', url], { NODE_OPTIONS })
      onTestFinished(() => void child.kill('SIGKILL'))
      const output = ended(child)
      await onSilence.promise
      child.kill(signal)
      expect(await output).toMatchObject({ code })
    },
  )
})

describe.skipIf(process.platform === 'win32' /* it has no bash */)('export and import in a shell', () => {
  beforeAll(async () => {
    for (const name of ['a', 'b']) await writeFile(at(`${name}.ndjson`), exportOf(`basin-${name}`, 100))
    expect(await shell('headwater import a.ndjson --storage ./source')).toMatchObject({ code: 0 })
  })

  const content = async (script: string) => {
    const { code, stdout } = await shell(script)
    expect(code).toBe(0)
    return contentOf(stdout)
  }

  it('copies a directory to a server, and from there through a pipe to another', async () => {
    const [first, second] = [await serve('--storage', 'memory'), await serve('--storage', 'memory')]
    const script = `headwater export --storage ./source --out copy.ndjson --quiet
      headwater import copy.ndjson --url ${first} --quiet
      headwater export --url ${first} | headwater import --url ${second} --quiet
      headwater export --url ${second}`
    expect(await content(script)).toBe(await content('headwater export --storage ./source'))
  })

  it('an export to a file is only for its owner, and leaves none behind if it fails', async () => {
    await shell('headwater export --storage ./source --out mine.ndjson')
    expect((await stat(at('mine.ndjson'))).mode & 0o777).toBe(0o600)
    const failed = await shell(
      'headwater export --storage ./source --out none.ndjson --stream s --basin nope',
    )
    expect([failed.code, existsSync(at('none.ndjson'))]).toEqual([1, false])
    const full = await shell('headwater export --storage ./source --out /dev/full')
    expect(full).toMatchObject({ code: 1, stderr: 'headwater: `/dev/full` already exists\n' })
  })

  it('an import stops at a signal and continues later', async () => {
    const text = await readFile(at('a.ndjson'), 'utf8')
    const stopped = headwater.start(['import', '--storage', at('stopped')])
    const end = ended(stopped)
    stopped.stdin!.on('error', () => {}).write(text.slice(0, text.indexOf('{"seq_num":50')))
    // By then, the pipe has been read.
    await expect.poll(() => existsSync(at('stopped'))).toBe(true)
    stopped.kill('SIGINT')
    expect(await end).toMatchObject({ code: 130, err: expect.stringContaining('continue with `--resume`') })
    const resumed =
      'headwater import a.ndjson --resume --storage ./stopped --quiet; headwater export --storage ./stopped'
    expect(await content(resumed)).toBe(await content('headwater export --storage ./source'))
  })

  it('an export fails if it is redirected to a file that cannot hold it', async () => {
    const { code, stderr } = await shell('headwater export --storage ./source > /dev/full')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^headwater: cannot write to standard output: ENOSPC.*\n$/m)
  })

  it('an export redirected with >> is complete and is appended to the file', async () => {
    const script = 'echo before > whole; headwater export --storage ./source >> whole; echo behind >> whole'
    expect(await shell(script)).toMatchObject({
      code: 0,
      stderr: 'Exported 1 basin, 1 stream, 100 records\n',
    })
    const lines = (await readFile(at('whole'), 'utf8')).trimEnd().split('\n')
    expect([lines[0], lines.at(-2), lines.at(-1)]).toEqual([
      'before',
      '{"export_end":{"basins":1,"streams":1,"records":100}}',
      'behind',
    ])
    expect(lines).toHaveLength(107)
  })

  it('an export without a reader prints no summary', async () => {
    const { code, stderr } = await shell('set -o pipefail; headwater export --storage ./source | exec 0<&-')
    expect([code, stderr]).toEqual([0, ''])
  })

  it.each([
    ['a process substitution', 'headwater import <(cat b.ndjson) --storage ./substituted'],
    ['standard input by its name', 'cat b.ndjson | headwater import /dev/stdin --storage ./by-name'],
    ['a named pipe', 'mkfifo pipe; cat b.ndjson > pipe & headwater import pipe --storage ./piped'],
  ])('%s is imported', async (_, script) => {
    expect(await shell(script)).toMatchObject({
      code: 0,
      stderr: 'Imported 1 basin, 1 stream, 100 records\n',
    })
  })
})

/** Reads lines one at a time. */
function followLines(stream: NodeJS.ReadableStream) {
  let text = ''
  return {
    async next(): Promise<string> {
      for (;;) {
        const feed = text.indexOf('\n')
        if (feed >= 0) {
          const line = text.slice(0, feed)
          text = text.slice(feed + 1)
          return line
        }
        const [chunk] = await once(stream, 'data')
        text += String(chunk)
      }
    },
  }
}

function exportOf(basin: string, records: number): string {
  const tail = { seq_num: records, timestamp: 9 }
  const lines = [
    { headwater_export: 1, exported_at: '2030-01-01T00:00:00Z' },
    { basin, config: {} },
    { stream: 's', basin, config: {}, cipher: null, start: 0, tail, fencing_token: null },
    ...Array.from({ length: records }, (_, i) => ({ seq_num: i, timestamp: 9, body: 'x'.repeat(100) })),
    { stream_end: 's', records },
    { export_end: { basins: 1, streams: 1, records } },
  ]
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}
