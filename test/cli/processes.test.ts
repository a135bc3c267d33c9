// @module-tag slow

import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ended, program } from './program.ts'

const headwater = program()
const at = (name: string) => join(headwater.directory, name)

/** Runs a shell script in the directory of the test. It calls the program as `headwater`. */
async function shell(script: string, env: Readonly<Record<string, string>> = {}) {
  const body = `headwater() { "${process.execPath}" "${at('main.mjs')}" "$@"; }\n${script}`
  const options = { cwd: headwater.directory, env: { PATH: process.env.PATH, ...env } }
  return promisify(execFile)('bash', ['--norc', '-c', body], options).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) =>
      ({ code, stdout, stderr }) as { code: number; stdout: string; stderr: string },
  )
}

/** Whether a shell is not installed. */
function lacks(name: string): boolean {
  return spawnSync(name, ['-c', 'true']).status !== 0
}

function whyLacks(name: string): string {
  return lacks(name) ? ` (skipped: ${name} is not installed)` : ''
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

  it('reports that another process has the storage open', async () => {
    await serve('--dir', at('locked'))
    const { code, stderr } = await shell('headwater ls --storage ./locked')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^headwater: .*process/)
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

  it.skipIf(!existsSync('/dev/full') /* the device is Linux's */)(
    'reports that its output cannot be written',
    async () => {
      expect(await shell('headwater completion bash > /dev/full')).toEqual({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^headwater: cannot write to standard output: ENOSPC.*\n$/),
      })
    },
  )

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

  it('a follower ends when the reader of its pipe exits', async () => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const script = `headwater append app/s one --quiet 2> /dev/null
      (while true; do headwater append app/s more --quiet; done) & writer=$!
      headwater tail -f app/s | head -n 1; code=\${PIPESTATUS[0]}; kill $writer; exit $code`
    expect(await shell(script, { HEADWATER_URL })).toMatchObject({ code: 0, stdout: 'one\n' })
  })

  it.skipIf(process.platform !== 'linux' /* only Linux tells */)(
    'a follower of a silent stream ends when the reader of its pipe exits',
    async () => {
      const HEADWATER_URL = await serve('--storage', 'memory')
      const script = `headwater append app/s one --quiet 2> /dev/null
        headwater tail -f app/s | head -n 1; exit \${PIPESTATUS[0]}`
      expect(await shell(script, { HEADWATER_URL })).toMatchObject({ code: 0, stdout: 'one\n' })
    },
  )

  it.each([['a server'], ['a directory']])('bench on %s removes its basin after Ctrl+C', async (target) => {
    const HEADWATER_URL = await serve('--storage', 'memory')
    const options = target === 'a server' ? ['--url', HEADWATER_URL] : ['--storage', at('benched')]
    const bench = headwater.start(['bench', '--records', '1000000000', ...options])
    const output = ended(bench)
    if (target === 'a server') {
      await shell('until headwater ls | grep -q bench; do :; done', { HEADWATER_URL })
    } else await shell('until ls benched/journal* > /dev/null 2>&1; do :; done')
    bench.kill('SIGINT')
    expect(await output).toMatchObject({ code: 130, err: '' })
    expect((await shell(`headwater ls ${options.join(' ')}`)).stdout).toBe('')
  })

  it('a follower continues after its server restarts', async () => {
    const options = ['serve', '--no-auth', '--storage', './restarted']
    const start = async (port: string) => {
      const server = headwater.start([...options, '--port', port], {}, headwater.directory)
      onTestFinished(() => void server.kill('SIGKILL'))
      const [chunk] = await once(server.stdout!, 'data')
      return { server, url: /http:\S+/.exec(String(chunk))![0] }
    }
    const { server, url } = await start('0')
    const env = { HEADWATER_URL: url }
    await shell('headwater append app/s one', env)
    const follower = headwater.start(['tail', '-f', 'app/s'], env)
    const output = ended(follower)
    await once(follower.stdout!, 'data')
    server.kill('SIGTERM')
    await once(server, 'exit')
    await start(new URL(url).port)
    const printed = once(follower.stdout!, 'data')
    await shell('headwater append app/s two', env)
    await printed
    follower.kill('SIGINT')
    const { code, out, err } = await output
    expect([code, out.toString()]).toEqual([130, 'one\ntwo\n'])
    expect(err).toMatch(/^headwater: .*; reconnecting, Ctrl\+C stops\n$/)
  })

  it('prints no colour to a pipe', async () => {
    expect((await shell('headwater --help; headwater read --help')).stdout).not.toContain('\u001b')
  })

  it('completes commands and options in bash', async () => {
    await writeFile(at('completion'), (await shell('headwater completion bash')).stdout)
    const complete = async (...words: string[]) => {
      const quoted = words.map((word) => `'${word}'`).join(' ')
      const script = `source ./completion; COMP_WORDS=(headwater ${quoted}); COMP_CWORD=${words.length}; _headwater; echo "\${COMPREPLY[@]}"`
      return (await shell(script)).stdout.trim().split(' ')
    }
    expect(await complete('ap')).toEqual(['append'])
    expect(await complete('token', '')).toEqual(['issue', 'list', 'revoke', '--help'])
    expect(await complete('token', 'issue', 'ci', '--op')).toEqual(['--ops', '--op-groups'])
    expect(await complete('append', 'a/b', '--no')).toEqual(['--no-create'])
    expect(await complete('tail', '-n', '5', '--fo')).toEqual(['--follow', '--format'])
  })

  it.skipIf(lacks('fish'))(`completes commands and options in fish${whyLacks('fish')}`, async () => {
    await writeFile(at('headwater.fish'), (await shell('headwater completion fish')).stdout)
    const complete = async (line: string) => {
      const script = `source ./headwater.fish; complete -C "headwater ${line}"`
      const { stdout } = await shell(`fish --no-config -c '${script}'`)
      return stdout
        .trim()
        .split('\n')
        .map((word) => word.split('\t')[0])
    }
    expect(await complete('ap')).toEqual(['append'])
    expect(await complete('token ')).toEqual(['issue', 'list', 'revoke', '--help'])
    expect(await complete('token issue ci --op')).toEqual(['--ops', '--op-groups'])
    expect(await complete('append a/b --no')).toEqual(['--no-create'])
  })

  it.skipIf(lacks('zsh'))(`completes commands and options in zsh${whyLacks('zsh')}`, async () => {
    const script = (await shell('headwater completion zsh')).stdout
    // Completion functions run only while a line is edited: this one prints what it would be offered.
    const stub = `_describe() { print -rl -- \${items%%:*}; }; compdef() { :; }`
    await writeFile(at('complete.zsh'), `${stub}\n${script}\nwords=("$@"); CURRENT=$#; _headwater\n`)
    const complete = async (...words: string[]) => {
      const quoted = words.map((word) => `'${word}'`).join(' ')
      return (await shell(`zsh -f ./complete.zsh headwater ${quoted}`)).stdout.trim().split('\n')
    }
    expect(await complete('')).toContain('append')
    expect(await complete('token', '')).toEqual(['issue', 'list', 'revoke', '--help'])
    expect(await complete('token', 'issue', 'ci', '')).toContain('--op-groups')
    expect(await complete('append', 'a/b', '')).toContain('--no-create')
  })

  it.each([
    ['zsh', ['#compdef headwater', "'tail')", "'--follow:"]],
    ['fish', ['complete -c headwater', "-a '--follow'", "-a 'issue'"]],
  ])('prints a completion script for %s with every command', async (shellName, parts) => {
    const { stdout } = await shell(`headwater completion ${shellName}`)
    for (const part of parts) expect(stdout).toContain(part)
    for (const name of (await shell('headwater --help')).stdout.match(/^ +[a-z-]+(?= {4})/gm)!) {
      expect(stdout).toContain(name.trim())
    }
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
