import { expect, it } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { resultOf, service } from './run.ts'

/** Of the form in which servers issue them. */
const ISSUED = Buffer.from('0123456789abcdefghijklmnopqrstuvteam/one').toString('base64')

it.each<[string, (token: string) => string[], string?]>([
  ['a command', (token) => [token]],
  ['an argument of serve', (token) => ['serve', token]],
  ['a port', (token) => ['serve', '--port', token]],
  ['an option', (token) => ['serve', `--${token}`]],
  ['a root token of an open server', (token) => ['serve', '--no-auth', '--root-token', token]],
  ['a second id', (token) => ['token', 'issue', 'id', token, '--ops', 'read']],
  ['an operation', (token) => ['token', 'issue', 'id', '--ops', token]],
  ['an expiry', (token) => ['token', 'issue', 'id', '--ops', 'read', '--expires-in', token]],
  ['a URL', (token) => ['token', 'list', '--url', token]],
  ['the password of a URL', (token) => ['token', 'list', '--url', `http://u:${token}@localhost`]],
  ['a token that is refused', (token) => ['token', 'list', '--token', token]],
  ['a variable of the environment', () => ['token', 'list'], 'HEADWATER_TOKEN'],
])('a token that is given as %s is not printed', async (_, argsOf, variable) => {
  const { hw } = await service()
  const services: CliContext['fetch'][] = [
    createHandler(hw),
    async () => new Response('no such thing', { status: 500 }),
    ({ url }) => Promise.reject(new TypeError('fetch failed', { cause: new Error(url) })),
  ]
  for (const token of [ISSUED, 'not-the-root-token-of-a-test']) {
    for (const fetch of services) {
      const env = variable === undefined ? {} : { [variable]: token }
      const { exitCode, out, err } = await resultOf(argsOf(token), { env, fetch })
      expect([exitCode === 0, err.length > 0]).toEqual([false, true])
      const printed = [...out, ...err].join('\n')
      expect(printed).not.toContain(token.slice(0, 14))
    }
  }
})
