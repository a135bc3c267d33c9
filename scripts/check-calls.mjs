// Counts the distinct functions of the built package that one warm call enters, by V8's precise coverage, and
// fails if a count exceeds its budget. Callbacks and getters count. With --list, prints the functions.
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

const BODY = JSON.stringify({ records: [{ body: 'hello' }] })
async function post() {
  const request = new Request('http://localhost/v1/streams/my-stream/records', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'svc-basin': 'my-basin' },
    body: BODY,
  })
  const response = await handler(request)
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

/** The most functions that a warm call may enter. */
const BUDGETS = [
  { name: 'append of one record in memory', call: () => stream.append('hello'), functions: 62 },
  { name: 'HTTP POST of one record, by a Request', call: post, functions: 131 },
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
        .map(({ functionName, ranges }) => ({ url, functionName, at: ranges[0].startOffset })),
    )
}

let failed = false
for (const { name, call, functions: budget } of BUDGETS) {
  for (let i = 0; i < WARM_UP_CALLS; i++) await call()
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await takeCoverage()
  await call()
  const entered = await takeCoverage()
  await session.post('Profiler.stopPreciseCoverage')
  const isOver = entered.length > budget
  failed ||= isOver
  console.log(`${isOver ? 'OVER' : 'ok'}: ${name}: ${entered.length} functions of ${budget}`)
  if (!isListing) continue
  for (const { url, functionName, at } of entered) {
    console.log(`  ${fileURLToPath(url).split('/').at(-1)} ${functionName || `(anonymous at ${at})`}`)
  }
}
session.disconnect()
await hw.close()
process.exitCode = failed ? 1 : 0
