import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ROOT_TOKEN, resultOf, service } from './run.ts'

const URL = 'http://127.0.0.1:9999'

/** A user with a configuration directory, and a server. */
async function user(isOpen = false) {
  const { hw, world, requests } = await service({ open: isOpen })
  const directory = await mkdtemp(join(tmpdir(), 'headwater-login-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const file = join(directory, 'headwater', 'contexts.json')
  const command = (words: string, input = '', env: Readonly<Record<string, string>> = {}) =>
    resultOf(words.split(' '), {
      ...world,
      env: { XDG_CONFIG_HOME: directory, ...env },
      input: () => Readable.from([Buffer.from(input)]),
    })
  return { hw, requests, file, command }
}

describe('headwater login', () => {
  it('stores a valid token in a file of the user, and commands use it', async () => {
    const { command, file, requests } = await user()
    const login = await command(`login --url ${URL}`, `${ROOT_TOKEN}\n`)
    expect(login).toEqual({
      exitCode: 0,
      out: [],
      err: [`Logged in to ${URL} as default; stored in ${file}`],
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700)
    expect((await command('append app/s hello')).exitCode).toBe(0)
    expect(requests.at(-1)!.url).toMatch(`${URL}/`)
    expect(requests.at(-1)!.headers.get('authorization')).toBe(`Bearer ${ROOT_TOKEN}`)
    const listed = await command('contexts')
    expect(listed.out).toEqual([`*  default  ${URL}  with token`])
    expect(JSON.stringify([login, listed, await command('contexts --json')])).not.toContain(ROOT_TOKEN)
  })

  it('stores nothing if the token is not valid, or none is given', async () => {
    const { command, file } = await user()
    expect(await command(`login --url ${URL}`, 'wrong-token-of-a-user\n')).toMatchObject({
      exitCode: 1,
      out: [],
    })
    expect(await command(`login --url ${URL}`, '\n')).toEqual({
      exitCode: 2,
      out: [],
      err: ['headwater: no access token was given; a server without authentication needs `--no-token`'],
    })
    await expect(stat(file)).rejects.toThrow('ENOENT')
  })

  it('a token that may not list basins is valid', async () => {
    const { command, hw } = await user()
    const token = await hw.issueAccessToken({ id: 'r', scope: { basins: { prefix: '' }, ops: ['read'] } })
    expect((await command(`login --url ${URL}`, token)).exitCode).toBe(0)
  })

  it('contexts are chosen by an option, a variable or as the current one', async () => {
    const { command, requests } = await user(true)
    await command(`login one --url http://127.0.0.1:1 --no-token`)
    await command(`login two --url http://127.0.0.1:2 --no-token`)
    const used = async (words: string, env = {}) => {
      await command(words, '', env)
      return new globalThis.URL(requests.at(-1)!.url).port
    }
    expect(await used('ls')).toBe('2')
    expect(await used('ls --context one')).toBe('1')
    expect(await used('ls', { HEADWATER_CONTEXT: 'one' })).toBe('1')
    expect(
      await used('ls --context two', { HEADWATER_CONTEXT: 'one', HEADWATER_URL: 'http://127.0.0.1:3' }),
    ).toBe('2')
    expect(await used('ls', { HEADWATER_CONTEXT: 'one', HEADWATER_URL: 'http://127.0.0.1:3' })).toBe('3')
    expect(await used('ls --url http://127.0.0.1:4', { HEADWATER_CONTEXT: 'one' })).toBe('4')
    await command('contexts one')
    expect(await used('ls')).toBe('1')
  })

  it('sends tokens only to the server that they are for', async () => {
    const { command, requests } = await user(true)
    await command(`login --url ${URL}`, ROOT_TOKEN)
    const sent = async (words: string, env = {}) => {
      await command(words, '', env)
      return requests.at(-1)!.headers.get('authorization')
    }
    expect(await sent('ls --url http://127.0.0.1:1')).toBeNull()
    expect(await sent('ls', { HEADWATER_URL: 'http://127.0.0.1:1' })).toBeNull()
    expect(await sent('ls', { HEADWATER_TOKEN: 'of-another-server' })).toBe(`Bearer ${ROOT_TOKEN}`)
    expect(await sent('ls --token given')).toBe('Bearer given')
    await command(`login open --url ${URL} --no-token`)
    expect(await sent('ls', { HEADWATER_ROOT_TOKEN: 'of-another-server' })).toBeNull()
  })

  it('logout removes the token from the file', async () => {
    const { command, file } = await user(true)
    await command(`login --url ${URL}`, ROOT_TOKEN)
    await command(`login other --url ${URL} --no-token`)
    expect((await command('logout default')).err).toEqual(['Removed the context default'])
    expect(await readFile(file, 'utf8')).not.toContain(ROOT_TOKEN)
    expect((await command('contexts')).out).toEqual([`*  other  ${URL}  without token`])
    expect((await command('logout')).exitCode).toBe(0)
    expect(await command('logout')).toMatchObject({
      exitCode: 1,
      err: ['headwater: there is no current context; name one'],
    })
  })

  it('a damaged file is reported without its text', async () => {
    const { command, file } = await user()
    await command(`login --url ${URL}`, ROOT_TOKEN)
    await writeFile(file, `{"contexts": {"a": ${ROOT_TOKEN}`)
    expect(await command('ls')).toEqual({
      exitCode: 1,
      out: [],
      err: [`headwater: \`${file}\` is not a file of contexts; remove it and log in again`],
    })
  })
})

it.each([
  ['ls --context nope', 'unknown context `nope`; expected one of `headwater contexts`: there are none'],
  ['ls --context a --url http://x', '`--url` cannot be combined with `--context`'],
  ['ls --context a --storage ./x', '`--storage` cannot be combined with `--context`'],
  ['login a/b', 'the name of a context must have 1 to 64 letters'],
  ['login --url ftp://x', '`--url` must be an HTTP URL'],
])('%s is rejected with exit code 2', async (words, message) => {
  expect(await resultOf(words.split(' '))).toEqual({
    exitCode: 2,
    out: [],
    err: [expect.stringContaining(message)],
  })
})
