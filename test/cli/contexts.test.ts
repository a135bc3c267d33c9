import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { ROOT_TOKEN, resultOf, service } from './run.ts'

/** A user with the contexts `one` and `two`, of which the second is the current one. */
async function user() {
  const { world, requests } = await service()
  const directory = await mkdtemp(join(tmpdir(), 'headwater-contexts-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const command = (words: string, env: Readonly<Record<string, string>> = {}) =>
    resultOf(words.split(' '), {
      ...world,
      env: { XDG_CONFIG_HOME: directory, ...env },
      input: () => Readable.from([Buffer.from(ROOT_TOKEN)]),
    })
  await command('login one --url http://127.0.0.1:1')
  await command('login two --url http://127.0.0.1:2')
  /** The port and the token of the request that a command sends. */
  const sent = async (words: string, env = {}) => {
    await command(words, env)
    const { url, headers } = requests.at(-1)!
    return [new URL(url).port, headers.get('authorization')?.replace('Bearer ', '')]
  }
  return { command, sent, file: join(directory, 'headwater', 'contexts.json') }
}

const ELSEWHERE = { HEADWATER_URL: 'http://127.0.0.1:3' }

it.each<[string, Record<string, string>, string, string | undefined]>([
  ['ls', {}, '2', ROOT_TOKEN],
  ['ls --context one', {}, '1', ROOT_TOKEN],
  ['ls', { HEADWATER_CONTEXT: 'one' }, '1', ROOT_TOKEN],
  ['ls --context two', { HEADWATER_CONTEXT: 'one', ...ELSEWHERE }, '2', ROOT_TOKEN],
  ['ls', { HEADWATER_CONTEXT: 'one', ...ELSEWHERE }, '3', undefined],
  ['ls --url http://127.0.0.1:4', { HEADWATER_CONTEXT: 'one' }, '4', undefined],
  ['ls', { HEADWATER_TOKEN: 'of-another-server' }, '2', ROOT_TOKEN],
  ['ls --token given', {}, '2', 'given'],
])('`%s` with %j asks port %s, with the token that is for it: %s', async (words, env, port, token) => {
  const { sent } = await user()
  expect(await sent(words, env)).toEqual([port, token])
})

it('`contexts NAME` chooses another one', async () => {
  const { command, sent } = await user()
  await command('contexts one')
  expect(await sent('ls')).toEqual(['1', ROOT_TOKEN])
})

it('logins at the same time do not fail, and leave one file', async () => {
  const { command, file } = await user()
  const logins = ['a', 'b', 'c'].map((name) => command(`login ${name} --url http://127.0.0.1:3`))
  expect((await Promise.all(logins)).map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  expect(await readdir(join(file, '..'))).toEqual(['contexts.json'])
  expect((await command('contexts')).exitCode).toBe(0)
})

it('only the user may read the file, and a damaged one is reported without its text', async () => {
  const { command, file } = await user()
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700)
  await writeFile(file, `{"contexts": {"a": ${ROOT_TOKEN}`)
  expect(await command('ls')).toEqual({
    exitCode: 1,
    out: [],
    err: [`headwater: \`${file}\` is not a file of contexts; remove it and log in again`],
  })
})
