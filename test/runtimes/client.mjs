// Tests `headwater/client` in the runtime that executes this file: on a handler, and over sockets.
import assert from 'node:assert/strict'
import { connect } from '../../dist/client.js'
import { createHandler } from '../../dist/http.js'
import { open } from '../../dist/index.js'
import { memory } from '../../dist/memory.js'
import { serve } from '../../dist/node.js'
import { useClient } from './client-use.mjs'
import { runTests } from './runtime.mjs'

/** How the client reaches the engine. */
const ACCESSES = {
  'a handler': async (hw) => ({
    options: { url: 'http://localhost', fetch: createHandler(hw, { auth: 'none' }) },
    close: async () => {},
  }),
  'a server': async (hw) => {
    const server = await serve(hw, { port: 0, auth: 'none' })
    return { options: { url: server.url }, close: () => server.close({ graceMs: 0 }) }
  },
  'a server, with the `fetch` of the runtime': async (hw) => {
    const server = await serve(hw, { port: 0, auth: 'none' })
    const options = { url: server.url, fetch: (request) => fetch(request) }
    return { options, close: () => server.close({ graceMs: 0 }) }
  },
}

async function run(accessTo) {
  const hw = await open({ storage: memory() })
  const access = await accessTo(hw)
  const client = await connect(access.options)
  try {
    assert.deepEqual(await useClient(client), {
      start: 0,
      produced: [3, 4, 5],
      stored: ['one', 'two', 'three', 'a', 'b', 'c'],
      followed: ['b', 'c', 'live'],
      error: ['seq_num_mismatch', 7],
    })
    assert.equal((await hw.basin('my-app').stream('s').checkTail()).seqNum, 7)
  } finally {
    await client.close()
    await access.close()
    await hw.close()
  }
}

const tests = Object.entries(ACCESSES).map(([title, accessTo]) => ({
  title: `appends, produces, reads and follows through ${title}`,
  run: () => run(accessTo),
}))
process.exit((await runTests('headwater/client', tests)) ? 0 : 1)
