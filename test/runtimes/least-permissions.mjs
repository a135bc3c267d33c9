// Tests a directory and a server in a runtime that was started with access to files, the network and the
// environment only.
import assert from 'node:assert/strict'
import { filesystem } from '../../dist/filesystem.js'
import { open } from '../../dist/index.js'
import { serve } from '../../dist/node.js'
import { remove, runTests, temporaryDirectory } from './runtime.mjs'

async function opensAndServesTwice() {
  const directory = await temporaryDirectory()
  try {
    for (const seqNum of [0, 1]) {
      const hw = await open({ storage: filesystem(directory) })
      const ack = await hw.basin('my-app').stream('a').append('one')
      assert.equal(ack.start.seqNum, seqNum)
      const server = await serve(hw, { port: 0, auth: 'none' })
      assert.equal((await fetch(`${server.url}/health`)).status, 200)
      await server.close()
      await hw.close()
    }
  } finally {
    await remove(directory)
  }
}

const tests = [{ title: 'opens a directory and serves it, twice', run: opensAndServesTwice }]
process.exit((await runTests('least permissions', tests)) ? 0 : 1)
