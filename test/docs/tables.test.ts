import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { ROUTES } from '../../adapters/http/routes.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open } from '../../src/index.ts'
import { GROUP_OF, OPERATIONS } from '../../src/model/access.ts'
import { ERROR_KINDS, type ErrorCode, HeadwaterError } from '../../src/model/errors.ts'
import { errorBody } from '../../src/wire/errors.ts'
import { PROJECT, section } from './examples.ts'

/** Whether an error has this code on the wire too. */
function isOnTheWire(code: string): boolean {
  const { text } = errorBody(new HeadwaterError(code as ErrorCode, 'why', BARE_DETAILS))
  return JSON.parse(text).code === code
}

/** Errors with these have a body without a code. */
const BARE_DETAILS = { seqNum: 0, fencingToken: '', tail: { seqNum: 0, timestamp: 0 } }

const page = (title: string) => section('docs/protocol.md', title)

/** The rows of the tables of a section, each as the text of its cells. */
async function rows(title: string): Promise<string[][]> {
  const lines = (await page(title)).split('\n').filter((line) => line.startsWith('| '))
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  )
}

const names = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

test('"Error codes" has every code with its status, and whether to retry', async () => {
  const written = (await rows('Error codes'))
    .slice(1)
    .map(([code, status, retry, effects]) => [
      names(code!)[0],
      { status: Number(status), retryable: retry === 'yes', mayHaveEffects: effects === 'maybe' },
    ])
  const foreign = names((await page('Error codes')).split('Clients should also expect')[1]!)
  const codes = Object.entries(ERROR_KINDS).filter(([code]) => isOnTheWire(code) && !foreign.includes(code))
  expect(Object.fromEntries(written)).toEqual(Object.fromEntries(codes))
})

test('"Operations" has every operation in its group, and in the order of lists', async () => {
  const written = Object.fromEntries(
    (await rows('Operations'))
      .slice(1)
      .flatMap(([level, read, write]) => [
        ...names(read!).map((operation) => [operation, [names(level!)[0], 'read']]),
        ...names(write!).map((operation) => [operation, [names(level!)[0], 'write']]),
      ]),
  )
  expect(written).toEqual(GROUP_OF)
  expect(names((await page('Operations')).split('in the order')[1]!)).toEqual([...OPERATIONS])
})

test('"Endpoints" has every endpoint', async () => {
  const tables = [...(await rows('Endpoints')), ...(await rows('Health and Prometheus'))]
  const written = tables.flatMap(([cell]) =>
    cell!.split(/, (?=GET `)/).flatMap((endpoints) => {
      const methods = endpoints.split(' `')[0]!.split(', ')
      return names(endpoints).flatMap((path) => methods.map((method) => `${method} ${path}`))
    }),
  )
  const served = ROUTES.flatMap(({ pattern, target }) =>
    Object.keys(target).map((method) => `${method} ${pattern}`),
  )
  expect(written.sort()).toEqual(served.filter((endpoint) => !endpoint.startsWith('HEAD ')).sort())
})

test('the request in "Append request" is understood', async () => {
  const body = /```json\n([\s\S]*?)```/.exec(await page('Append request'))![1]!
  await using hw = await open({ storage: memory() })
  await hw.createBasin('my-basin')
  await hw.basin('my-basin').ensureStream('s')
  const headers = { 'svc-basin': 'my-basin', 'content-type': 'application/json' }
  const url = 'http://localhost/v1/streams/s/records'
  const response = await createHandler(hw, { auth: 'none' })(
    new Request(url, { method: 'POST', headers, body }),
  )
  expect([response.status, await response.json()]).toEqual([412, { fencing_token_mismatch: '' }])
})

test('docs/limits.md states the budgets of bundles that npm run check:size enforces', async () => {
  const limits = await readFile(join(PROJECT, '.size-limit.json'), 'utf8')
  const stated = [...(await section('docs/limits.md', 'Bundle sizes')).matchAll(/\| ([\d.]+) KiB \|$/gm)]
  const enforced = [...limits.matchAll(/"limit": "([\d.]+) KiB"/g)]
  expect(stated.length).toBeGreaterThan(5)
  expect(stated.map(([, KiB]) => KiB)).toEqual(enforced.map(([, KiB]) => KiB))
})
