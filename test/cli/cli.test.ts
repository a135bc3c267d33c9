import { EventEmitter } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/cli-context.ts'
import { runCli } from '../../adapters/cli/run-cli.ts'
import packageJson from '../../package.json' with { type: 'json' }

interface Run {
  readonly out: string[]
  readonly err: string[]
  readonly exits: number[]
  readonly signals: EventEmitter
  readonly exitCode: Promise<number>
  closes(): number
  advance(ms: number): void
  ready(): Promise<string>
}

/** Runs the command with a service that answers every request with its path. */
function run(args: string[], options: { close?: () => Promise<void> } = {}): Run {
  const out: string[] = []
  const err: string[] = []
  const exits: number[] = []
  const signals = new EventEmitter()
  let closes = 0
  let now = 0
  let printed: (() => void) | undefined
  const context: CliContext = {
    openService: async () => ({
      handler: (request) => new Response(new URL(request.url).pathname),
      close: async () => {
        closes++
        await options.close?.()
      },
    }),
    print: (line) => {
      out.push(line)
      printed?.()
    },
    printError: (line) => err.push(line),
    signals,
    now: () => now,
    exitNow: (code) => exits.push(code),
  }
  const exitCode = runCli(args, context)
  onTestFinished(async () => {
    signals.emit('SIGTERM')
    await exitCode
  })
  return {
    out,
    err,
    exits,
    signals,
    exitCode,
    closes: () => closes,
    advance: (ms) => {
      now += ms
    },
    ready: async () => {
      while (!out.includes('Press Ctrl+C to stop.')) await new Promise<void>((resolve) => (printed = resolve))
      return /http:\S+/.exec(out[0]!)![0]
    },
  }
}

describe('headwater', () => {
  it('prints its version', async () => {
    const { exitCode, out } = run(['--version'])
    expect(await exitCode).toBe(0)
    expect(out).toEqual([packageJson.version])
  })

  it('prints help, for all and for serve', async () => {
    const all = run(['--help'])
    expect(await all.exitCode).toBe(0)
    expect(all.out.join('\n')).toContain('serve')
    const serve = run(['serve', '--help'])
    expect(await serve.exitCode).toBe(0)
    for (const option of ['--port', '--host', '--storage', '--open'])
      expect(serve.out.join('\n')).toContain(option)
  })

  it.each([
    [[], 'headwater: no command given. Commands: serve. See headwater --help'],
    [['drink'], 'headwater: unknown command drink. Commands: serve. See headwater --help'],
    [['serve', '--open', '--prot', '80'], 'headwater: unexpected argument 80. See headwater serve --help'],
    [['serve', '--open', '--prot=80'], 'headwater: unknown option --prot. See headwater serve --help'],
    [['serve', '--open', '--port', 'http'], 'headwater: --port must be a number from 0 to 65535, not http'],
    [['serve', '--open', '--port', '65536'], 'headwater: --port must be a number from 0 to 65535, not 65536'],
    [['serve', '--open', '--port=-1'], 'headwater: --port must be a number from 0 to 65535, not -1'],
    [['serve', '--open', '--port'], 'headwater: --port must be a number from 0 to 65535, not nothing'],
    [['serve', '--open', '--storage', 'clay'], 'headwater: unknown storage clay. Allowed: memory'],
    [['serve', '--open', '--host='], 'headwater: --host must not be empty'],
  ])('refuses %j with one line and exit code 2', async (args, message) => {
    const { exitCode, err, out } = run(args)
    expect(await exitCode).toBe(2)
    expect(err).toEqual([message])
    expect(out).toEqual([])
  })

  it('says what to do when there would be no access', async () => {
    const { exitCode, err, closes } = run(['serve'])
    expect(await exitCode).toBe(2)
    expect(err).toHaveLength(1)
    expect(err[0]).toMatch(/401.*Pass --open/)
    expect(closes()).toBe(0)
  })
})

describe('headwater serve', () => {
  it('serves, tells where and how, and stops when asked to', async () => {
    const { ready, out, err, signals, exitCode, closes } = run(['serve', '--open', '--port', '0'])
    const url = await ready()
    expect(await (await fetch(`${url}/health`)).text()).toBe('/health')
    expect(out).toContain(`Health:  ${url}/health`)
    expect(out.filter((line) => line.startsWith('curl '))).toHaveLength(3)
    signals.emit('SIGINT')
    expect(await exitCode).toBe(0)
    expect(closes()).toBeGreaterThan(0)
    expect(err).toEqual([])
    expect(signals.eventNames()).toEqual([])
    await expect(fetch(`${url}/health`)).rejects.toThrow()
  })

  it('stops at once with a second signal, which a repeat of the first press is not', async () => {
    let finish: (() => void) | undefined
    const close = () => new Promise<void>((resolve) => (finish = resolve))
    const { ready, signals, exits, exitCode, advance, closes } = run(['serve', '--open', '--port', '0'], {
      close,
    })
    await ready()
    signals.emit('SIGINT')
    advance(100)
    signals.emit('SIGINT')
    expect(exits).toEqual([])
    advance(1_000)
    signals.emit('SIGINT')
    expect(exits).toEqual([130])
    signals.emit('SIGTERM')
    expect(exits).toEqual([130, 143])
    while (closes() < 2) {
      finish?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    finish!()
    expect(await exitCode).toBe(0)
  })

  it('says that a port is in use, and frees what it had opened', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = taken.address() as { port: number }
    const { exitCode, err, closes } = run(['serve', '--open', '--port', String(port)])
    expect(await exitCode).toBe(1)
    expect(err).toEqual([`headwater: port ${port} of 127.0.0.1 is in use. Choose another with --port`])
    expect(closes()).toBe(1)
  })

  it('warns when everybody may come in', async () => {
    const { ready, err } = run(['serve', '--open', '--port', '0', '--host', '0.0.0.0'])
    await ready()
    expect(err).toEqual([expect.stringMatching(/^Warning: .*0\.0\.0\.0/)])
  })
})
