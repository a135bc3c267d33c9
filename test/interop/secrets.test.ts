// @module-tag slow

import { expect, it } from 'vitest'
import { Raw } from '../node/raw.ts'
import { FAILURES, failingCalls } from './secrets/failing-calls.ts'
import { failInProcess, inspectHandles } from './secrets/in-process.ts'
import { EVERYWHERE, KEYS, PLAIN_TEXTS, ROOT_TOKEN, SEALED_TEXTS, secretsOf } from './secrets/material.ts'
import { sendMisplacedSecrets } from './secrets/misplaced-secrets.ts'
import { startServer } from './secrets/server.ts'
import { STORAGE_METHODS } from './secrets/watched-storage.ts'

it('a server leaks no token, key or record', async () => {
  const { hw, clock, server, watched, material, client, evidence } = await startServer()
  const { tokens } = material
  const statuses = await sendMisplacedSecrets(client, material)
  for (const status of [200, 400, 401, 403, 404, 412, 415, 422]) {
    expect(statuses.get(status), `answers with ${status}`).toBeGreaterThan(0)
  }
  const raw = new Raw(server.port).send(
    `GET / HTTP/1.1\r\nauthorization: Bearer ${ROOT_TOKEN}\r\nx y\r\n\r\n`,
  )
  evidence.add('answers', 'what is no HTTP', await raw.until('\r\n\r\n'))

  for (const [index, method] of STORAGE_METHODS.entries()) {
    const error = FAILURES[index % FAILURES.length]!
    await watched.failing(method, error, () => failingCalls(client, tokens))
    await watched.failing(method, error, () => clock.advance('2m'))
  }
  await failInProcess(hw, tokens['an issued token']!, watched, evidence)
  await inspectHandles(hw, tokens['an issued token']!, evidence)

  const secrets = secretsOf(tokens, KEYS, SEALED_TEXTS)
  expect(evidence.find(secrets, EVERYWHERE)).toEqual([])
  const exceptStored = EVERYWHERE.filter((place) => place !== 'stored')
  expect(evidence.find(PLAIN_TEXTS, exceptStored)).toEqual([])
  // There was something to search, and the permitted values were found.
  for (const place of ['answers', 'errors', 'stored', 'handles'] as const)
    expect(evidence.count(place), place).toBeGreaterThan(20)
  expect(evidence.find(SEALED_TEXTS, ['answers with records'])).not.toEqual([])
  expect(evidence.find(PLAIN_TEXTS, ['answers with records'])).not.toEqual([])
  expect(evidence.find(PLAIN_TEXTS, ['stored'])).not.toEqual([])
})
