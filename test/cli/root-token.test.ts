import { describe, expect, it, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/cli-context.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { counted, directoryKind, memoryKind, ROOT_TOKEN, run } from './run.ts'

const SERVE = ['serve', '--port', '0']

/** Starts a server, and stops it with the test or when told to. */
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

describe('the root token', () => {
  it('is made and shown at the first start on a storage, and at no other', async () => {
    const storages = [memoryKind(), directoryKind()]
    const first = await started(['--dir', 'here'], { storages })
    const token = /^Root token: (\S{40,})$/m.exec(first.text)![1]!
    expect(first.text).toMatch(/shown only now/)
    expect(first.text).toMatch(/Authorization: Bearer/)
    expect(first.text).toMatch(/HEADWATER_ROOT_TOKEN/)
    expect(first.text).toMatch(/S2_ACCESS_TOKEN/)
    expect(first.curl).toHaveLength(3)
    for (const line of first.curl) expect(line).toContain(` -H 'authorization: Bearer ${token}'`)
    expect([await first.status(), await first.status('wrong'), await first.status(token)]).toEqual([
      401, 401, 200,
    ])
    await first.stop()

    const second = await started(['--dir', 'here'], { storages })
    expect(second.text).not.toContain(token)
    expect(second.text).toMatch(/^Root token: this storage has one/m)
    for (const line of second.curl)
      expect(line).toContain(` -H "authorization: Bearer $HEADWATER_ROOT_TOKEN"`)
    expect([await second.status(), await second.status(token)]).toEqual([401, 200])
    await second.stop()

    const elsewhere = await started(['--dir', 'there'], { storages })
    expect(/^Root token: (\S{40,})$/m.exec(elsewhere.text)![1]).not.toBe(token)
  })

  it.each([
    ['the option', ['--root-token', ROOT_TOKEN], {}, /that of --root-token/],
    ['the environment', [], { HEADWATER_ROOT_TOKEN: ROOT_TOKEN }, /that of HEADWATER_ROOT_TOKEN/],
    [
      'the option rather than the environment',
      [`--root-token=${ROOT_TOKEN}`],
      { HEADWATER_ROOT_TOKEN: 'another-token-altogether' },
      /that of --root-token/,
    ],
  ])('is that of %s, which is not printed', async (_, args, env, source) => {
    const storages = [memoryKind(memory())]
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

  it('is not taken from an empty variable', async () => {
    const { text } = await started([], { env: { HEADWATER_ROOT_TOKEN: '' } })
    expect(text).toMatch(/^Root token: \S{40,}$/m)
  })

  it('is neither made nor set for an open server, which says so', async () => {
    const storages = [memoryKind(memory())]
    const opened = await started(['--open'], { storages, env: { HEADWATER_ROOT_TOKEN: ROOT_TOKEN } })
    expect(opened.err).toEqual(['Warning: HEADWATER_ROOT_TOKEN is not used: --open demands no token'])
    expect(await opened.status()).toBe(200)
    await opened.stop()
    const { text } = await started([], { storages })
    expect(text).toMatch(/shown only now/)
  })

  it('must not be one that was issued, which is found out on the storage', async () => {
    const storage = memory()
    const hw = await open({ storage })
    onTestFinished(() => hw.close())
    const token = await hw.issueAccessToken({ id: 'a', scope: { ops: ['read'] } })
    const { exitCode, out, err } = run([...SERVE, '--root-token', token], { storages: [memoryKind(storage)] })
    expect(await exitCode).toBe(2)
    expect(out).toEqual([])
    expect(err).toEqual(['headwater: --root-token: the root token must not be a token that was issued'])
  })

  it.each([
    ['', 'empty'],
    ['fifteen-letters', 'too short'],
    ['x'.repeat(1025), 'too long'],
    ['with a space in it', 'of words'],
    ['naïve-but-long-enough', 'not ASCII'],
    ['a-line\nand-another-line', 'of lines'],
  ])('%j is refused, being %s', async (token) => {
    for (const [name, args, env] of [
      ['--root-token', [`--root-token=${token}`], {}],
      ['HEADWATER_ROOT_TOKEN', [], { HEADWATER_ROOT_TOKEN: token }],
    ] as const) {
      if (token === '' && name !== '--root-token') continue
      const { storage, counts } = counted(memory())
      const { exitCode, out, err } = run([...SERVE, ...args], { env, storages: [memoryKind(storage)] })
      expect(await exitCode).toBe(2)
      expect(counts.opened).toBe(0)
      expect(out).toEqual([])
      expect(err).toEqual([
        `headwater: ${name}: the root token must have 16 to 1024 characters, visible ASCII without spaces`,
      ])
    }
  })
})
