// @module-tag slow

import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { resultOf } from '../cli/run.ts'
import { testStorage } from '../support/index.ts'
import { collect } from './secrets/collect.ts'
import type { Evidence } from './secrets/evidence.ts'
import { keyOf, ROOT_TOKEN, secretsOf } from './secrets/material.ts'

describe('the command', () => {
  let evidence: Evidence
  beforeEach(() => {
    evidence = collect()
  })

  const TOKENS = { 'a token': issuedTokenOf('team/one'), 'a root token': ROOT_TOKEN }
  const SCOPE = ['--ops', 'read']

  it.each<[string, (token: string) => string[], object?]>([
    ['a command', (token) => [token]],
    ['an argument of serve', (token) => ['serve', token]],
    ['a port', (token) => ['serve', '--port', token]],
    ['an option', (token) => ['serve', `--${token}`]],
    ['a root token of an open server', (token) => ['serve', '--no-auth', '--root-token', token]],
    ['a second id', (token) => ['token', 'issue', 'id', token, ...SCOPE]],
    ['an operation', (token) => ['token', 'issue', 'id', '--ops', token]],
    ['an expiry', (token) => ['token', 'issue', 'id', ...SCOPE, '--expires-in', token]],
    ['a URL', (token) => ['token', 'list', '--url', token]],
    [
      'the password of a URL',
      (token) => ['token', 'list', '--url', `http://u:${encodeURIComponent(token)}@localhost`],
    ],
    ['a token that is refused', (token) => ['token', 'list', '--token', token]],
    ['a token in the environment', () => ['token', 'list'], { HEADWATER_TOKEN: ROOT_TOKEN }],
  ])('does not repeat a token that was given as %s', async (_, argsOf, env = {}) => {
    const refusing = createHandler(await openEngine())
    const services = [
      refusing,
      async () => new Response('no such thing', { status: 500 }),
      (request: Request) => Promise.reject(new TypeError('fetch failed', { cause: new Error(request.url) })),
    ]
    for (const [name, token] of Object.entries(TOKENS)) {
      for (const service of services) {
        const { exitCode, out, err } = await resultOf(argsOf(token), { env: { ...env }, fetch: service })
        expect(exitCode).not.toBe(0)
        expect(err).not.toEqual([])
        for (const line of [...out, ...err]) evidence.add('printed', `${name}: ${line}`, line)
      }
    }
    expect(evidence.find(secretsOf(TOKENS, {}))).toEqual([])
  })
})

async function openEngine(): Promise<Engine> {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  return hw
}

/** The form of a token with this id. */
function issuedTokenOf(id: string): string {
  return Buffer.concat([Buffer.from(keyOf(9), 'base64'), Buffer.from(id)]).toString('base64')
}
