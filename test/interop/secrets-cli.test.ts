// @module-tag slow

import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { type Run, resultOf, run, testStorages } from '../cli/run.ts'
import { testClock, testStorage } from '../support/index.ts'
import { collect } from './secrets/collect.ts'
import type { Evidence, Place } from './secrets/evidence.ts'
import { FAILURES, failingCalls } from './secrets/failing-calls.ts'
import { BASIN, EVERYWHERE, KEYS, keyOf, ROOT_TOKEN, SEALED_TEXTS, secretsOf } from './secrets/material.ts'
import { RecordingClient, sendMisplacedSecrets } from './secrets/misplaced-secrets.ts'
import { STORAGE_METHODS, watchedStorage } from './secrets/watched-storage.ts'

describe('the command', () => {
  let evidence: Evidence
  beforeEach(() => {
    evidence = collect()
  })

  /** Starts a server on a storage and records its output until it is ready. */
  async function startServer(
    storage: Storage,
    place: Place,
    args: readonly string[] = [],
    env = {},
  ): Promise<Run & { url: string }> {
    const server = run(['serve', '--port', '0', ...args], {
      storages: testStorages({ storage }),
      env,
      clock: testClock(),
    })
    const url = await server.ready()
    for (const line of server.out.splice(0)) evidence.add(place, 'a line', line)
    return { ...server, url }
  }
  /** Stops the server and records its remaining output. */
  async function stopped(server: Run): Promise<void> {
    server.signals.emit('SIGTERM')
    expect(await server.exitCode).toBe(0)
    for (const line of [...server.out, ...server.err]) evidence.add('printed', 'a line', line)
  }

  it('prints the root token at the first start on a storage only', async () => {
    const { storage, failing } = watchedStorage(evidence)
    const first = run(['serve', '--port', '0'], { storages: testStorages({ storage }) })
    const url = await first.ready()
    const welcome = first.out.splice(0)
    for (const line of welcome) evidence.add('printed at first start', line.slice(0, 10), line)
    const rootToken = /^Root token: (\S+)$/m.exec(welcome.join('\n'))![1]!
    const client = new RecordingClient(url, evidence)
    const authorization = `Bearer ${rootToken}`
    const post = { method: 'POST', headers: { authorization, 'content-type': 'application/json' } }
    const scope = '{"basins":{"prefix":""},"streams":{"prefix":""},"ops":["read","append"]}'
    const issued = await fetch(`${url}/v1/access-tokens`, {
      ...post,
      body: `{"id":"by-http","scope":${scope}}`,
    })
    const answer = await issued.text()
    evidence.add('answers to issuers', 'POST', answer)
    const byCommand = await resultOf(
      ['token', 'issue', 'by-command', '--ops', 'read', '--streams', '*', '--url', url],
      { env: { HEADWATER_ROOT_TOKEN: rootToken }, fetch: (request) => fetch(request) },
    )
    evidence.add('printed to issuers', 'token issue', byCommand.out)
    evidence.add('printed', 'token issue', byCommand.err)
    const tokens = {
      'the root token': rootToken,
      'a token issued by HTTP': JSON.parse(answer).access_token as string,
      'a token issued by the command': byCommand.out[0]!,
    }

    await fetch(`${url}/v1/basins/${BASIN}`, {
      ...post,
      method: 'PUT',
      body: '{"config":{"stream_cipher":"aes-256-gcm"}}',
    })
    const headers = { ...post.headers, 'svc-basin': BASIN, 'svc-encryption-key': KEYS['the right key'] }
    const records = `${url}/v1/streams/letters/records`
    await fetch(`${url}/v1/streams/letters`, { method: 'PUT', headers })
    const body = JSON.stringify({ records: [{ body: SEALED_TEXTS['a sealed body'] }] })
    expect((await fetch(records, { method: 'POST', headers, body })).status).toBe(200)
    await sendMisplacedSecrets(client, { basin: BASIN, streams: ['letters'], tokens, keys: KEYS })
    for (const [index, method] of STORAGE_METHODS.entries()) {
      await failing(method, FAILURES[index % FAILURES.length]!, () => failingCalls(client, tokens))
    }
    await stopped(first)
    const logged = evidence.count('printed')
    expect(logged).toBeGreaterThan(3)

    await stopped(await startServer(storage, 'printed'))
    const env = { HEADWATER_ROOT_TOKEN: ROOT_TOKEN }
    await stopped(await startServer(storage, 'printed', [], env))
    await stopped(await startServer(storage, 'printed', ['--root-token', ROOT_TOKEN]))

    const secrets = secretsOf({ ...tokens, 'another root token': ROOT_TOKEN }, KEYS, SEALED_TEXTS)
    expect(evidence.find(secrets, EVERYWHERE)).toEqual([])
    const findToken = (name: keyof typeof tokens, place: Place) =>
      evidence.find({ [name]: tokens[name] }, [place]).filter((finding) => finding.includes('as text in'))
    expect(findToken('the root token', 'printed at first start')).toEqual([
      'the root token as text in printed at first start: Root token',
      "the root token as text in printed at first start: curl -w '\\",
    ])
    expect(findToken('a token issued by HTTP', 'answers to issuers')).toHaveLength(1)
    expect(findToken('a token issued by the command', 'printed to issuers')).toHaveLength(1)
  })
  const TOKENS = { 'a token': issuedTokenOf('team/one'), 'a root token': ROOT_TOKEN }
  const SCOPE = ['--ops', 'read']

  it.each<[string, (token: string) => string[], object?]>([
    ['a command', (token) => [token]],
    ['a command of token', (token) => ['token', token]],
    ['an argument of serve', (token) => ['serve', token]],
    ['a port', (token) => ['serve', '--port', token]],
    ['a storage', (token) => ['serve', '--storage', token]],
    ['the value of a switch', (token) => ['serve', `--no-auth=${token}`]],
    ['an option', (token) => ['serve', `--${token}`]],
    ['a root token, twice', (token) => ['serve', '--root-token', token, '--root-token', token]],
    ['a root token with a space', (token) => ['serve', '--root-token', `${token} `]],
    ['a root token of an open server', (token) => ['serve', '--no-auth', '--root-token', token]],
    [
      'a root token in the environment, cut in two',
      () => ['serve', '--port', '0'],
      { HEADWATER_ROOT_TOKEN: `${ROOT_TOKEN}\n${ROOT_TOKEN}` },
    ],
    ['a second id', (token) => ['token', 'issue', 'id', token, ...SCOPE]],
    ['an operation', (token) => ['token', 'issue', 'id', '--ops', token]],
    ['groups', (token) => ['token', 'issue', 'id', '--op-groups', token]],
    ['a scope', (token) => ['token', 'issue', 'id', '--scope', token]],
    ['a member of a scope', (token) => ['token', 'issue', 'id', '--scope', `{"ops":["${token}"]}`]],
    ['basins', (token) => ['token', 'issue', 'id', ...SCOPE, '--basins', token]],
    ['an expiry', (token) => ['token', 'issue', 'id', ...SCOPE, '--expires-in', token]],
    ['a date', (token) => ['token', 'issue', 'id', ...SCOPE, '--expires-at', token]],
    ['a URL', (token) => ['token', 'list', '--url', token]],
    [
      'the password of a URL',
      (token) => ['token', 'list', '--url', `http://u:${encodeURIComponent(token)}@localhost`],
    ],
    [
      'the query of a URL',
      (token) => ['token', 'list', '--url', `http://localhost/?token=${encodeURIComponent(token)}`],
    ],
    ['a token with a space', (token) => ['token', 'list', '--token', `${token} x`]],
    ['a token that is refused', (token) => ['token', 'list', '--token', token]],
    ['a token, with a directory', (token) => ['token', 'list', '--token', token, '--dir', 'here']],
    ['a token in the environment', () => ['token', 'list'], { HEADWATER_TOKEN: ROOT_TOKEN }],
    [
      'a token in the environment, in two lines',
      () => ['token', 'list'],
      { HEADWATER_TOKEN: `${ROOT_TOKEN}\n${ROOT_TOKEN}` },
    ],
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
