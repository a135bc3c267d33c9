import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { welcome } from '../../adapters/cli/root-token.ts'
import { SignIn } from '../../adapters/cli/sign-in.ts'
import { hasStreamResetLimits } from '../../adapters/node/limits.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import type { Storage, StorageSession } from '../../src/storage/contract.ts'
import { reservedPort } from '../support/port.ts'
import { counted, ROOT_TOKEN, run, testStorages } from './run.ts'

const SERVE = ['serve', '--port', '0']

/** Starts a server that stops with the test, or earlier with `stop`. */
async function started(args: string[], world: Partial<CliContext> = {}) {
  const server = run([...SERVE, ...args], world)
  const url = await server.ready()
  return {
    text: server.out.join('\n'),
    err: server.err,
    curl: server.out.filter((line) => line.startsWith('curl ')),
    status: async (token?: string) => {
      const headers: HeadersInit = token === undefined ? {} : { authorization: `Bearer ${token}` }
      return (await fetch(`${url}/v1/basins`, { headers })).status
    },
    stop: async () => {
      server.signals.emit('SIGTERM')
      expect(await server.exitCode).toBe(0)
    },
  }
}

it.each([
  ['20.20.2', 1],
  ['22.10.0', 0],
])('the welcome on Node %s recommends a newer one in %i lines', (node, count) => {
  const lines = welcome({
    url: 'http://127.0.0.1:8787',
    storage: 'memory',
    retention: 'infinite',
    access: 'open',
    node,
  })
  const advice =
    `Node ${node} ends an HTTP/2 connection after 1000 requests that its client cancels: ` +
    'use Node 22.10 or later (docs/limits.md)'
  expect(lines.filter((line) => line === advice)).toHaveLength(count)
})

it('the server recommends a newer Node if it runs on an old one', async () => {
  const { node } = process.versions
  const { text, err } = await started(['--storage', 'memory'])
  const isRecommended = text.includes(`Node ${node} ends an HTTP/2 connection after 1000 requests`)
  expect([isRecommended, err]).toEqual([!hasStreamResetLimits(node), []])
})

describe('the link to the console', () => {
  const codeOf = (text: string) => /^Console, signed in once.*: (\S+)\/#code=([\w-]{22})$/m.exec(text)
  const signIn = async (text: string, code = codeOf(text)![2]!) => {
    const headers = { authorization: `Bearer ${code}` }
    const response = await fetch(`${codeOf(text)![1]!}/sign-in`, { method: 'POST', headers })
    const { access_token: token } = (await response.json()) as { access_token?: string }
    return { status: response.status, token, isKept: response.headers.get('cache-control') !== 'no-store' }
  }

  it('has a code for a token of its own, at the first start, and later on a terminal only', async () => {
    const storages = testStorages()
    const first = await started(['--storage', './here'], { storages })
    const root = /^Root token: (\S{40,})$/m.exec(first.text)![1]!
    expect(await signIn(first.text, 'another')).toEqual({ status: 401, token: undefined, isKept: false })
    const { token } = await signIn(first.text)
    expect([token === root, await first.status(token)]).toEqual([false, 200])
    expect(await signIn(first.text)).toEqual({ status: 401, token: undefined, isKept: false })
    await first.stop()
    const kept = await started(['--storage', './here'], { storages })
    expect(kept.text).toMatch(/^Console: http:\/\/[^#]*$/m)
    expect(await kept.status(token)).toBe(200)
    await kept.stop()
    const output = () => Object.assign(new PassThrough(), { isTTY: true })
    const second = await started(['--storage', './here'], { storages, output })
    expect((await signIn(second.text, codeOf(first.text)![2])).status).toBe(401)
    const next = (await signIn(second.text)).token
    expect([await second.status(token), await second.status(next)]).toEqual([401, 200])
    await second.stop()
  })

  it('has a code that is valid for ten minutes', async () => {
    const clock = virtualClock()
    const hw = await open({ storage: memory(), clock })
    onTestFinished(() => hw.close())
    const signIn = new SignIn(hw, clock)
    const late = signIn.offer()
    await clock.advance(600_000)
    expect(await signIn.exchange(late)).toBeUndefined()
    const code = signIn.offer()
    await clock.advance(599_999)
    expect(await signIn.exchange('')).toBeUndefined()
    const [token, again] = await Promise.all([signIn.exchange(code), signIn.exchange(code)])
    expect([token?.length ?? 0, again]).toEqual([expect.any(Number), undefined])
    expect((await hw.listAccessTokens()).items[0]?.expiresAt?.getTime()).toBe(clock.now() + 12 * 3_600_000)
  })

  it('has no token without authentication', async () => {
    const { text, stop } = await started(['--storage', 'memory', '--no-auth'])
    expect(text).toMatch(/^Console: http:\/\/[^#]*$/m)
    await stop()
  })
})

describe('the root token', () => {
  it('is created and shown only at the first start on a storage', async () => {
    const storages = testStorages()
    const first = await started(['--storage', './here'], { storages })
    const token = /^Root token: (\S{40,})$/m.exec(first.text)![1]!
    expect(first.text).toMatch(/not shown again/)
    expect(first.text).toMatch(/HEADWATER_ROOT_TOKEN/)
    const isAboutNode = (line: string) => line.startsWith('Node ')
    expect(first.text.split('\n').filter((line) => !isAboutNode(line))).toHaveLength(12)
    expect(first.curl).toHaveLength(3)
    for (const line of first.curl) expect(line).toContain(` -H 'authorization: Bearer ${token}'`)
    expect([await first.status(), await first.status('wrong'), await first.status(token)]).toEqual([
      401, 401, 200,
    ])
    await first.stop()

    const second = await started(['--storage', './here'], { storages })
    expect(second.text).not.toContain(token)
    expect(second.text).toMatch(/^Root token: created at an earlier start/m)
    for (const line of second.curl)
      expect(line).toContain(` -H "authorization: Bearer $HEADWATER_ROOT_TOKEN"`)
    expect([await second.status(), await second.status(token)]).toEqual([401, 200])
    await second.stop()

    const elsewhere = await started(['--storage', './there'], { storages })
    expect(/^Root token: (\S{40,})$/m.exec(elsewhere.text)![1]).not.toBe(token)
  })

  it.each([
    ['the option', ['--root-token', ROOT_TOKEN], {}, /from --root-token/],
    ['the environment', [], { HEADWATER_ROOT_TOKEN: ROOT_TOKEN }, /from HEADWATER_ROOT_TOKEN/],
    [
      'the option rather than the environment',
      [`--root-token=${ROOT_TOKEN}`],
      { HEADWATER_ROOT_TOKEN: 'another-token-altogether' },
      /from --root-token/,
    ],
  ])('comes from %s and is not printed', async (_, args, env, source) => {
    const storages = testStorages({ storage: memory() })
    const before = await started([], { storages })
    const old = /^Root token: (\S{40,})$/m.exec(before.text)![1]!
    await before.stop()
    const server = await started(args, { env, storages })
    expect(server.text).toMatch(source)
    expect([server.text, ...server.err].join('\n')).not.toContain(ROOT_TOKEN)
    for (const line of server.curl)
      expect(line).toContain(` -H "authorization: Bearer $HEADWATER_ROOT_TOKEN"`)
    expect([await server.status(ROOT_TOKEN), await server.status(old)]).toEqual([200, 401])
    expect(server.err).toEqual([])
  })

  it('is in force before the first response, when it replaces another', async () => {
    const inner = memory()
    const hw = await open({ storage: inner })
    onTestFinished(() => hw.close())
    const old = (await hw.createRootToken())!
    const port = await reservedPort()
    const { storage, isHeld, release } = heldCommits(inner)
    run(['serve', '--port', `${port}`, '--root-token', ROOT_TOKEN], { storages: testStorages({ storage }) })
    await isHeld
    const url = `http://127.0.0.1:${port}`
    const statuses = Promise.all(
      [ROOT_TOKEN, old].map(async (token) => {
        const headers = { authorization: `Bearer ${token}` }
        return (await fetch(`${url}/v1/basins`, { headers })).status
      }),
    )
    // Without the hold, this response comes after the others.
    expect((await fetch(`${url}/health`)).status).toBe(200)
    release()
    expect(await statuses).toEqual([200, 401])
  })

  it('ignores an empty variable', async () => {
    const { text } = await started([], { env: { HEADWATER_ROOT_TOKEN: '' } })
    expect(text).toMatch(/^Root token: \S{40,}$/m)
  })

  it('is neither created nor set with --no-auth, and giving one causes a warning', async () => {
    const storages = testStorages({ storage: memory() })
    const opened = await started(['--no-auth'], { storages, env: { HEADWATER_ROOT_TOKEN: ROOT_TOKEN } })
    expect(opened.err).toEqual(['Warning: HEADWATER_ROOT_TOKEN is ignored because of --no-auth'])
    expect(await opened.status()).toBe(200)
    await opened.stop()
    const { text } = await started([], { storages })
    expect(text).toMatch(/not shown again/)
  })

  it('must not be a token that was issued on the storage', async () => {
    const storage = memory()
    const hw = await open({ storage })
    onTestFinished(() => hw.close())
    const token = await hw.issueAccessToken({ id: 'a', scope: { ops: ['read'] } })
    const { exitCode, out, err } = run([...SERVE, '--root-token', token], {
      storages: testStorages({ storage }),
    })
    expect(await exitCode).toBe(2)
    expect(out).toEqual([])
    expect(err).toEqual(['headwater: `--root-token`: the root token must not be a token that was issued'])
  })

  it.each([
    ['empty', ''],
    ['too short', 'fifteen-letters'],
    ['too long', 'x'.repeat(1025)],
    ['with spaces', 'with a space in it'],
    ['not ASCII', 'naïve-but-long-enough'],
    ['with line breaks', 'a-line\nand-another-line'],
  ])('is rejected if it is %s', async (_, token) => {
    for (const [name, args, env] of [
      ['`--root-token`', [`--root-token=${token}`], {}],
      ['HEADWATER_ROOT_TOKEN', [], { HEADWATER_ROOT_TOKEN: token }],
    ] as const) {
      if (token === '' && name === 'HEADWATER_ROOT_TOKEN') continue
      const { storage, counts } = counted(memory())
      const { exitCode, out, err } = run([...SERVE, ...args], { env, storages: testStorages({ storage }) })
      expect(await exitCode).toBe(2)
      expect(counts.opened).toBe(0)
      expect(out).toEqual([])
      expect(err).toEqual([
        `headwater: ${name}: the root token must have 16 to 1024 characters, visible ASCII without spaces`,
      ])
    }
  })
})

/** A storage whose commits wait for `release`. */
function heldCommits(inner: Storage) {
  let hold!: () => void
  let release!: () => void
  const isHeld = new Promise<void>((resolve) => {
    hold = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const storage: Storage = {
    manifest: inner.manifest,
    async open(context) {
      const session = await inner.open(context)
      const commit: StorageSession['commit'] = async (changes) => {
        hold()
        await released
        return session.commit(changes)
      }
      return new Proxy(session, {
        get: (target, property: keyof StorageSession) =>
          property === 'commit' ? commit : target[property]?.bind(target),
      })
    },
  }
  onTestFinished(release)
  return { storage, isHeld, release }
}
