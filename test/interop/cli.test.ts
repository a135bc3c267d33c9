// @module-tag slow

import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bodies, strings, take } from './records.ts'
import { basinOn, FETCH, S2S } from './support.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
if (!existsSync(cli))
  execFileSync('npm', ['run', 'build'], { cwd: root, shell: process.platform === 'win32' })

const ROOT_TOKEN = 'the-root-token-of-a-test'

/** The environment of this process without the variables that the command reads. */
function environment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { HEADWATER_TOKEN: _, HEADWATER_ROOT_TOKEN: __, ...others } = process.env
  return { ...others, ...env }
}

/** Starts the installed command on a free port and waits until it is ready. */
async function startCli(options: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [cli, 'serve', '--port', '0', '--storage', 'memory', ...options], {
    env: environment(env),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(String(chunk)))
  const lines: string[] = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(line)
    if (!line.startsWith('Press Ctrl+C')) continue
    const url = /http:\S+/.exec(lines[0]!)![0]
    return { child, url, errors, lines, text: lines.join('\n') }
  }
  throw new Error(`it ended: ${errors.join('')}`)
}

interface Ended {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program until it exits. */
function ended(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(file, args, { env: environment(env), timeout: 100_000 }, (error, stdout, stderr) => {
      resolve({ exitCode: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr })
    })
  })
}

describe.each([FETCH, S2S])('headwater serve, by $name', (transport) => {
  it('serves the published client and stops on a signal, even with open sessions', async () => {
    const { child, url, errors } = await startCli(['--no-auth'])
    const basin = await basinOn(url, transport, { retry: { maxAttempts: 1 } })
    const stream = await basin.stream('history')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    const session = await stream.appendSession()
    expect((await (await session.submit(strings('live'))).ack()).end.seqNum).toBe(2)
    await session.close()
    expect(bodies(await take(follower, 2))).toEqual(['history', 'live'])
    await expect(basin.handle('missing').checkTail()).rejects.toMatchObject({ status: 404 })

    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    // A binary session is advised to reconnect, which fails.
    const { status } = await take(follower, 1).catch((error) => error)
    expect([502, 503]).toContain(status)
    await basin.close()
    expect(await exited).toEqual([0, null])
    expect(errors).toEqual([])
  })
})

function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'])
    return process.platform !== 'win32'
  } catch {
    return false
  }
}

const noCurl = hasCurl() ? '' : ' (skipped: they are for machines with curl and a POSIX shell)'

describe.skipIf(noCurl !== '')(`the suggested commands${noCurl}`, () => {
  it.each([
    ['on an open server', ['--no-auth'], {}],
    ['with the token that was made', [], {}],
    ['with the token of the environment', [], { HEADWATER_ROOT_TOKEN: ROOT_TOKEN }],
  ])('work unchanged, %s', async (_, options, env) => {
    const { lines } = await startCli(options, env)
    const answers: unknown[] = []
    for (const line of lines.filter((line) => line.startsWith('curl '))) {
      answers.push(JSON.parse((await ended('sh', ['-c', line], env)).stdout))
    }
    expect(answers).toMatchObject([
      { name: 'my-basin', state: 'active' },
      { start: { seq_num: 0 }, end: { seq_num: 1 } },
      { records: [{ seq_num: 0, body: 'hello' }] },
    ])
  })
})
