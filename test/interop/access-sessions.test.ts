// @module-tag slow

import { create, toBinary } from '@bufbuild/protobuf'
import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fenceRecord, type RecordInput, trimRecord } from '../../src/index.ts'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import { encodeMessageFrame } from '../../src/wire/session-frames.ts'
import { bytesOf, framesOf, parseSse } from '../http/support.ts'
import { parseTable } from '../support/access-table/cells.ts'
import { STREAM_TABLE } from '../support/access-table/table.ts'
import { makeToken, TOKENS } from '../support/access-table/tokens.ts'
import { exists, restore, STREAMS } from '../support/access-table/world.ts'
import { testClock } from '../support/index.ts'
import { clientOf, S2S, startService } from './support.ts'

const SESSION = { 'content-type': 's2s/proto', accept: 'application/protobuf' }

async function start() {
  const clock = testClock()
  const service = await startService({ clock, demandsTokens: true })
  onTestFinished(async () => {
    await service.close()
    expect(service.errors).toEqual([])
  })
  await restore(service.hw, () => clock.settle())
  const tokenOf = (name: string) => makeToken(service.hw, name, (ms) => clock.advance(ms))
  return { ...service, url: service.server.url, tokenOf }
}

/** The operation of the table for each kind of session. */
const WAYS: readonly (readonly [operation: string, way: string, send: Send])[] = [
  ['append', 'a session', (call) => appendSession(call, 'x')],
  ['fence', 'a session', (call) => appendSession(call, fenceRecord('mine'))],
  ['trim', 'a session', (call) => appendSession(call, trimRecord(0))],
  ['read', 'a session', readSession],
  ['read', 'events', readEvents],
]

interface Call {
  readonly records: string
  readonly headers: Readonly<Record<string, string>>
}
type Send = (call: Call) => Promise<string>

/** The status of a rejection, in the response or in the session; `ok` if there was none. */
async function appendSession({ records, headers }: Call, input: RecordInput): Promise<string> {
  const frame = frameOf(input)
  const body = frame as BodyInit
  const response = await fetch(records, { method: 'POST', headers: { ...headers, ...SESSION }, body })
  return outcomeOf(response)
}

async function readSession({ records, headers }: Call): Promise<string> {
  return outcomeOf(await fetch(`${records}?seq_num=0&count=1`, { headers: { ...headers, ...SESSION } }))
}

async function readEvents({ records, headers }: Call): Promise<string> {
  const accept = 'text/event-stream'
  const response = await fetch(`${records}?seq_num=0&count=1`, { headers: { ...headers, accept } })
  const text = await response.text()
  if (response.status !== 200) return `${response.status}`
  return parseSse(text).some(({ event }) => event === 'error') ? 'an error event' : 'ok'
}

async function outcomeOf(response: Response): Promise<string> {
  const bytes = await bytesOf(response)
  if (response.status !== 200) return `${response.status}`
  const last = (await framesOf(bytes)).at(-1)
  return last?.kind === 'terminal' ? `${last.status}` : 'ok'
}

function frameOf(input: RecordInput): Uint8Array {
  const { headers = [], body = '' } = typeof input === 'object' && 'body' in input ? input : { body: input }
  const bytes = (value: unknown) =>
    typeof value === 'string' ? new TextEncoder().encode(value) : (value as Uint8Array)
  const record = {
    headers: headers.map(([name, value]) => ({ name: bytes(name), value: bytes(value) })),
    body: bytes(body),
  }
  return encodeMessageFrame(toBinary(AppendInputSchema, create(AppendInputSchema, { records: [record] })))
}

describe('sessions and events follow the access table', () => {
  const table = parseTable(STREAM_TABLE)

  it.each([
    'root',
    'every op',
    'basin write',
    'stream read',
    'stream write',
    'no resources',
    'acme',
    'only main',
    'audit',
    'prefixed',
    'append',
    'append, trim',
    'append, fence',
    'trim, fence',
    'read one',
    'expired',
    'revoked',
    'other secret',
  ])('%s', async (name) => {
    const { hw, url, tokenOf } = await start()
    const authorization = `Bearer ${await tokenOf(name)}`
    const mayAppend = table.get(name)!.get('append')!
    const wrong: string[] = []
    for (const [operation, way, send] of WAYS) {
      const cell = table.get(name)!.get(operation)!
      for (const [letter, [basin, stream]] of Object.entries(STREAMS)) {
        const isExisting = exists(letter) && !cell.elsewhere.has(letter)
        const permitted = isExisting ? 'ok' : '404'
        // A session opens as an append before any command is read, so a caller that may append learns that
        // there is no stream.
        const opens = way === 'a session' && operation !== 'read' && mayAppend.letters.has(letter)
        const isPermitted = cell.letters.has(letter) || (opens && !isExisting)
        const expected = isPermitted ? permitted : cell.isUnauthorized ? '401' : '403'
        const holderName = TOKENS[name]!.autoPrefixStreams ? stream.replace(/^logs\//, '') : stream
        const records = `${url}/v1/streams/${encodeURIComponent(holderName)}/records`
        const tail = () => exists(letter) && hw.basin(basin, { autoCreate: false }).stream(stream).checkTail()
        const before = await tail()
        const outcome = await send({ records, headers: { authorization, 's2-basin': basin } })
        if (outcome !== expected) wrong.push(`${operation} ${letter} by ${way}: ${outcome}, not ${expected}`)
        const changed = JSON.stringify(await tail()) !== JSON.stringify(before)
        if (changed !== (outcome === 'ok' && operation !== 'read')) {
          wrong.push(`${operation} ${letter} by ${way}: ${outcome}, and yet the tail says otherwise`)
        }
      }
    }
    expect(wrong).toEqual([])
  })
})

describe('a session with the permission to append only', () => {
  it.each([
    ['a fence', AppendRecord.fence('mine')],
    ['a trim', AppendRecord.trim(1)],
  ])('ends at %s with 403: earlier appends are stored, later ones are not', async (_, command) => {
    const { hw, url, tokenOf } = await start()
    const client = clientOf(url, { retry: { maxAttempts: 1 } }, await tokenOf('append'))
    const stream = client.basin('acme-main').stream('logs/main', { forceTransport: S2S.force })
    const session = await stream.appendSession()
    const batch = (record: AppendRecord) => AppendInput.create([record])
    const first = await (await session.submit(batch(AppendRecord.string({ body: 'before' })))).ack()
    expect(first.end.seqNum).toBe(2)
    const rejected = (await session.submit(batch(command))).ack()
    await expect(rejected).rejects.toMatchObject({ status: 403, code: 'permission_denied' })
    await session.close().catch(() => {})
    await stream.close()
    const owned = hw.basin('acme-main').stream('logs/main')
    const { records } = await owned.readBatch({ seqNum: 0 }, { as: 'bytes' })
    expect(records.map(({ body }) => new TextDecoder().decode(body))).toEqual(['a record', 'before'])
    expect((await owned.checkTail()).seqNum).toBe(2)
    await expect.poll(() => hw.stats()).toMatchObject({ openReads: 0, pendingAppends: 0 })
  })
})
