import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, systemClock } from '../../src/index.ts'
import type { Storage } from '../../src/storage/contract.ts'
import { deferred, wrapped } from '../support/index.ts'
import { reservedPort } from '../support/port.ts'
import { ROOT_TOKEN, run, testStorages } from './run.ts'

const SERVE = ['serve', '--port', '0']

/** Starts a server that stops with the test, or earlier with `stop`. */
async function started(args: string[], world: Partial<CliContext> = {}) {
  const server = run([...SERVE, ...args], world)
  const url = await server.ready()
  return {
    text: server.out.join('\n'),
    err: server.err,
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

function rootTokenOf(text: string): string {
  return /^Root token: (\S{40,})$/m.exec(text)![1]!
}

describe('the link to the console', () => {
  const codeOf = (text: string) => /^Console, signed in once.*: (\S+)\/#code=([\w-]{22})$/m.exec(text)
  const signIn = async (text: string, code = codeOf(text)![2]!) => {
    const headers = { authorization: `Bearer ${code}` }
    const response = await fetch(`${codeOf(text)![1]!}/sign-in`, { method: 'POST', headers })
    const { access_token: token } = (await response.json()) as { access_token?: string }
    return { status: response.status, token, isKept: response.headers.get('cache-control') !== 'no-store' }
  }

  it('has a code for a token of its own, later on a terminal only', { tags: ['slow'] }, async () => {
    const storages = testStorages()
    const first = await started(['--storage', './here'], { storages })
    const root = rootTokenOf(first.text)
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
    for (const [minutes, status] of [
      [9, 200],
      [10, 401],
    ] as const) {
      let aheadMs = 0
      const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
      const { text } = await started(['--storage', 'memory'], { clock })
      // The code began earlier than the server was ready.
      aheadMs = minutes * 60_000
      expect((await signIn(text)).status).toBe(status)
    }
  })
})

describe('the root token', () => {
  it('is created at the first start on a storage', async () => {
    const storages = testStorages()
    const first = await started(['--storage', './here'], { storages })
    const token = rootTokenOf(first.text)
    expect([await first.status(), await first.status('wrong'), await first.status(token)]).toEqual([
      401, 401, 200,
    ])
    await first.stop()
    const second = await started(['--storage', './here'], { storages })
    expect([await second.status(), await second.status(token)]).toEqual([401, 200])
    await second.stop()
    const elsewhere = await started(['--storage', './there'], { storages })
    expect(rootTokenOf(elsewhere.text)).not.toBe(token)
  })

  it('replaces an earlier one when it is given, and is not printed', async () => {
    const storages = testStorages({ storage: memory() })
    const before = await started([], { storages })
    await before.stop()
    const server = await started(['--root-token', ROOT_TOKEN], { storages })
    expect([server.text, ...server.err].join('\n')).not.toContain(ROOT_TOKEN)
    expect([await server.status(ROOT_TOKEN), await server.status(rootTokenOf(before.text))]).toEqual([
      200, 401,
    ])
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
})

/** A storage whose commits wait for `release`. */
function heldCommits(inner: Storage) {
  const begun = deferred()
  const released = deferred()
  onTestFinished(() => released.resolve())
  const storage = wrapped(inner, {}, (session) => ({
    commit: async (changes) => {
      begun.resolve()
      await released.promise
      return session.commit(changes)
    },
  }))
  return { storage, isHeld: begun.promise, release: () => released.resolve() }
}
