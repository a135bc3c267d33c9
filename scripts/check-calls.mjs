// Counts the functions of the built package that one warm operation enters, and how often it calls them, by
// V8's precise coverage, and fails if a count exceeds its budget. Callbacks and getters count. With --list,
// prints the functions with their calls.
import { Session } from 'node:inspector/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inProject } from './project.mjs'

const WARM_UP_CALLS = 300
const isListing = process.argv.includes('--list')
const DIST = pathToFileURL(`${inProject('dist')}/`).href

const load = (name) => import(`${DIST}${name}.js`)
const [{ open }, { memory }, { createHandler }] = await Promise.all(['index', 'memory', 'http'].map(load))

const hw = await open({ storage: memory() })
const stream = hw.basin('my-basin').stream('my-stream')
const handler = createHandler(hw, { auth: 'none' })
await stream.append('create')

const HEADERS = { 'content-type': 'application/json', 'svc-basin': 'my-basin' }
const BODY = JSON.stringify({ records: [{ body: 'hello' }] })
const RECORDS = 'http://localhost/v1/streams/my-stream/records'

async function exchange(handler, url, init) {
  const response = await handler(new Request(url, init))
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`)
  return response
}
async function post(handler, headers) {
  const response = await exchange(handler, RECORDS, { method: 'POST', headers, body: BODY })
  await response.arrayBuffer()
}

const scope = { basins: { prefix: 'my-' }, streams: { prefix: 'my-' }, ops: ['append', 'read'] }
const token = await hw.issueAccessToken({ id: 'token', scope })
const withTokens = createHandler(hw)
const WITH_TOKEN = { ...HEADERS, authorization: `Bearer ${token}` }

await hw.basin('my-basin').createStream('live')
const live = hw.basin('my-basin').stream('live')
const accept = { ...HEADERS, accept: 'text/event-stream' }
const follower = await exchange(handler, 'http://localhost/v1/streams/live/records?seq_num=0', {
  headers: accept,
})
const events = follower.body.getReader()
await events.read()
async function liveEvent() {
  const event = events.read()
  await live.append('hello')
  await event
}

/** The most functions that a warm operation may enter, or the most calls that it may make. */
const BUDGETS = [
  { name: 'append of one record in memory', call: () => stream.append('hello'), functions: 60 },
  {
    name: 'read of one record in memory',
    call: () => stream.readBatch({ seqNum: 0, count: 1 }),
    functions: 70,
  },
  { name: 'append, and its event to a follower over SSE', call: liveEvent, calls: 120 },
  { name: 'HTTP POST of one record, by a Request', call: () => post(handler, HEADERS), functions: 117 },
  { name: 'HTTP POST of one record, with a token', call: () => post(withTokens, WITH_TOKEN), functions: 150 },
]

const session = new Session()
session.connect()
await session.post('Profiler.enable')

/** Coverage counts since the last call. */
async function takeCoverage() {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
    .filter(({ url }) => url.startsWith(DIST))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges }) => ranges[0].count > 0)
        .map(({ functionName, ranges: [{ count, startOffset: at }] }) => ({ url, functionName, count, at })),
    )
}

let failed = false
for (const { name, call, ...budgets } of BUDGETS) {
  for (let i = 0; i < WARM_UP_CALLS; i++) await call()
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await takeCoverage()
  await call()
  const entered = await takeCoverage()
  await session.post('Profiler.stopPreciseCoverage')
  const counts = { functions: entered.length, calls: entered.reduce((sum, { count }) => sum + count, 0) }
  for (const [unit, budget] of Object.entries(budgets)) {
    const isOver = counts[unit] > budget
    failed ||= isOver
    console.log(`${isOver ? 'OVER' : 'ok'}: ${name}: ${counts[unit]} ${unit} of ${budget}`)
  }
  if (!isListing) continue
  for (const { url, functionName, count, at } of entered) {
    console.log(
      `  ${count} ${fileURLToPath(url).split('/').at(-1)} ${functionName || `(anonymous at ${at})`}`,
    )
  }
}
events.cancel().catch(() => {})
session.disconnect()
await hw.close()
process.exitCode = failed ? 1 : 0
