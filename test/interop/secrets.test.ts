// @module-tag slow

import { expect, it } from 'vitest'
import type { Engine } from '../../src/index.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { EVERYTHING } from '../engine/access/support.ts'
import { Raw } from '../node/raw.ts'
import { EVERYWHERE } from './secrets/evidence.ts'
import { sendRequests, sendWhileFailing } from './secrets/requests.ts'
import * as vaults from './secrets/vault.ts'
import { BASIN, KEYS, SEALED_TEXTS, STORAGE_METHODS, type Vault } from './secrets/vault.ts'

/** Failures of a storage, and one that is unknown to the contract. */
const FAILURES: readonly (() => unknown)[] = [
  () => new StorageFailure('io', 'the disk is away', { nothingWritten: true }),
  () => new StorageFailure('corrupt', 'damaged', { nothingWritten: false, cause: new Error('a sector') }),
  () => new TypeError('a defect of the storage'),
]

/** Fails each method of the storage in turn while `call` runs. */
async function whileEachFails({ failing }: Vault, call: (method: string) => Promise<unknown>) {
  for (const [index, method] of STORAGE_METHODS.entries()) {
    await failing(method, FAILURES[index % FAILURES.length]!, () => call(method))
  }
}

/** The rejections for the owner of the process and for holders of a token, with and without the storage. */
async function failInProcess(vault: Vault): Promise<void> {
  const { hw, tokens, evidence } = vault
  const token = tokens['an issued token']
  const callers = { owner: hw, holder: hw.as(token), stranger: hw.as(`${token.slice(0, -8)}AAAAAAA=`) }
  const settle = (source: string, caller: Engine) => {
    const basin = caller.basin(BASIN, { autoCreate: false })
    const calls = Object.values(KEYS).flatMap((encryptionKey) => {
      const stream = basin.stream('letters', { encryptionKey })
      return [
        stream.append(SEALED_TEXTS['a sealed body'], { matchSeqNum: 99 }),
        stream.append({ headers: [['', SEALED_TEXTS['a sealed body']]] }),
        stream.append({ headers: [[SEALED_TEXTS['the name of a sealed header'], 'v']], timestamp: -1 }),
        stream.readBatch({ seqNum: 0 }),
        stream.readBatch({ seqNum: 99 }),
        caller.issueAccessToken({ id: 'fine', scope: EVERYTHING }),
        caller.issueAccessToken({ id: 'x', expiresAt: new Date(0), scope: {} }),
        caller.listAccessTokens({ prefix: 'x', limit: -1 }),
        basin.listStreams(),
      ]
    })
    return Promise.all(calls.map((call) => call.catch((error) => evidence.add('errors', source, error))))
  }
  for (const [who, caller] of Object.entries(callers)) {
    await settle(who, caller)
    await whileEachFails(vault, (method) => settle(`${who} while ${method} fails`, caller))
  }
}

/** Objects that an app may log, with their content. */
async function inspectHandles({ hw, tokens, evidence }: Vault): Promise<void> {
  for (const [who, caller] of Object.entries({ owner: hw, holder: hw.as(tokens['an issued token']) })) {
    const basin = caller.basin(BASIN)
    const key = KEYS['the right key']
    const stream = basin.stream('letters', { encryptionKey: key })
    await using producer = stream.producer()
    await using session = await stream.appendSession()
    const ticket = await session.submit(SEALED_TEXTS['a sealed body'])
    const handles = {
      engine: caller,
      basin,
      stream,
      'stream with bytes': basin.stream('letters', { encryptionKey: Buffer.from(key, 'base64') }),
      producer,
      session,
      ticket,
      ack: await ticket.ack(),
      read: stream.follow({ seqNum: 0 }),
      tokens: await caller.listAccessTokens(),
    }
    for (const [name, handle] of Object.entries(handles)) {
      evidence.add('handles', `${name} of the ${who}`, handle)
      evidence.add('handles', `${name} of the ${who} as a member`, { handle })
    }
  }
}

it('a server leaks no token, key or record', async () => {
  const vault = await vaults.startVault()
  const { clock, server, tokens, evidence } = vault
  expect([...(await sendRequests(vault))]).toEqual(
    expect.arrayContaining([200, 400, 401, 403, 404, 412, 415, 422]),
  )
  const request = `GET / HTTP/1.1\r\nauthorization: Bearer ${vaults.ROOT_TOKEN}\r\nx y\r\n\r\n`
  evidence.add('answers', 'what is no HTTP', await new Raw(server.port).send(request).until('\r\n\r\n'))
  await whileEachFails(vault, () => sendWhileFailing(vault))
  await whileEachFails(vault, () => clock.advance('2m'))
  await failInProcess(vault)
  await inspectHandles(vault)

  const secrets = Object.entries({ ...tokens, ...KEYS })
  const secretBytes = secrets
    .map(([name, text]) => [`the bytes of ${name}`, Buffer.from(text, 'base64').subarray(0, 32)] as const)
    .filter(([, bytes]) => bytes.length === 32)
  const all = { ...Object.fromEntries<string | Uint8Array>([...secrets, ...secretBytes]), ...SEALED_TEXTS }
  expect(evidence.find(all, EVERYWHERE)).toEqual([])
  const exceptStored = EVERYWHERE.filter((place) => place !== 'stored')
  expect(evidence.find(vaults.PLAIN_TEXTS, exceptStored)).toEqual([])
  // There was something to search, and the permitted values were found.
  for (const place of ['answers', 'errors', 'stored', 'handles'] as const) {
    expect(evidence.count(place), place).toBeGreaterThan(20)
  }
  expect(evidence.find(SEALED_TEXTS, ['answers with records'])).not.toEqual([])
  expect(evidence.find(vaults.PLAIN_TEXTS, ['answers with records'])).not.toEqual([])
  expect(evidence.find(vaults.PLAIN_TEXTS, ['stored'])).not.toEqual([])
})
