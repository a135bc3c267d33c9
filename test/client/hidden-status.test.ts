import { expect, it, onTestFinished, vi } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { type Headwater, open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { connectTo, failureOf } from './network.ts'

/** The headers of replies that pages see without a permission to see others. */
const SEEN_HEADERS = ['cache-control', 'content-length', 'content-type']

/** A client in a page, which sees no other headers of replies. The engine has the stream `basin/stream`. */
async function connectPage() {
  vi.stubGlobal('WorkerGlobalScope', class {})
  onTestFinished(() => void vi.unstubAllGlobals())
  const engine = await open({ storage: testStorage() })
  onTestFinished(() => engine.close())
  await engine.ensureBasin('basin')
  await engine.basin('basin').ensureStream('stream')
  await engine.basin('basin').stream('stream').append('a')
  const handle = createHandler(engine, { auth: 'none' })
  return connectTo(
    async (request) => {
      const { body, status, headers } = await handle(request)
      const seen = [...headers].filter(([name]) => SEEN_HEADERS.includes(name))
      return new Response(body, { status, headers: seen })
    },
    { retries: 0, resumes: 0 },
  )
}

const streamOf = (hw: Headwater, name = 'stream') => hw.basin('basin').stream(name)

it.each<[string, (hw: Headwater) => Promise<unknown>, object]>([
  ['revoking', (hw) => hw.revokeAccessToken('none'), { code: 'access_token_not_found', status: 404 }],
  ['deleting', (hw) => streamOf(hw, 'none').delete(), { code: 'stream_not_found', status: 404 }],
  ['a check of the tail', (hw) => streamOf(hw, 'none').checkTail(), { code: 'stream_not_found' }],
  ['a read', (hw) => streamOf(hw, 'none').readBatch(), { code: 'stream_not_found' }],
  ['a read session', (hw) => streamOf(hw, 'none').follow().toArray(), { code: 'stream_not_found' }],
  ['a creation', (hw) => hw.basin('basin').createStream('stream'), { code: 'resource_already_exists' }],
  [
    'a condition',
    (hw) => streamOf(hw).append('b', { matchSeqNum: 7 }),
    { code: 'seq_num_mismatch', status: 412, seqNum: 1, retryable: false, mayHaveEffects: false },
  ],
  [
    'fencing',
    (hw) => streamOf(hw).append('b', { fencingToken: 'mine' }),
    { code: 'fencing_token_mismatch', fencingToken: '' },
  ],
  [
    'a start beyond the tail',
    (hw) => streamOf(hw).readBatch({ seqNum: 9 }),
    { code: 'range_not_satisfiable' },
  ],
])('a page that does not see the status gets the failure of %s', async (_, call, error) => {
  const { hw } = await connectPage()
  expect(await failureOf(call(hw))).toMatchObject(error)
})

it('a page that does not see the status gets successes', async () => {
  const { hw } = await connectPage()
  const stream = streamOf(hw)
  expect(await stream.append('b', { matchSeqNum: 1 })).toMatchObject({ start: { seqNum: 1 } })
  expect(await stream.checkTail()).toMatchObject({ seqNum: 2 })
  expect((await stream.readBatch()).records).toHaveLength(2)
  expect((await stream.readBatch({ seqNum: 2 })).records).toEqual([])
  expect(await stream.read().toArray()).toHaveLength(2)
  await stream.delete()
})

it('a page does not take a batch of records for a start beyond the tail', async () => {
  vi.stubGlobal('WorkerGlobalScope', class {})
  onTestFinished(() => void vi.unstubAllGlobals())
  const tail = { seq_num: 0, timestamp: 0 }
  const { stream } = await connectTo(() => Response.json({ records: [], tail }), { retries: 0 })
  expect(await failureOf(stream.readBatch())).toMatchObject({ code: 'unavailable' })
  expect(await failureOf(stream.follow().toArray())).toMatchObject({
    code: 'other',
    message: 'unexpected response from the server: it is not a read session; check `url`',
  })
})

it('a page that asks a wrong address is told to check it', async () => {
  vi.stubGlobal('WorkerGlobalScope', class {})
  onTestFinished(() => void vi.unstubAllGlobals())
  const { stream } = await connectTo(() => Response.json({ code: 'not_found', message: 'no such path' }))
  expect(await failureOf(stream.checkTail())).toMatchObject({
    code: 'other',
    message: 'the server responded with status 404: no such path (not_found); check `url`',
  })
})
