import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runConformanceTests } from '@durable-streams/server-conformance-tests'
import { afterAll, beforeAll, describe } from 'vitest'
import { type NodeServer, serveHandler } from '../../adapters/node/serve.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { durableStreamsListener } from './support.ts'

const LONG_POLL_MS = 500

describe('the published suite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'headwater-durable-streams-'))
  afterAll(() => rm(directory, { recursive: true, force: true }))

  describe('on memory', () => passes(() => memory()))
  describe('on a directory', () => passes(() => filesystem(directory)))
})

function passes(newStorage: () => Storage): void {
  const options = { baseUrl: '', longPollTimeoutMs: LONG_POLL_MS }
  let hw: Engine
  let server: NodeServer

  beforeAll(async () => {
    hw = await open({ storage: newStorage() })
    const listener = durableStreamsListener(hw, { auth: 'none', cors: true, longPollMs: LONG_POLL_MS })
    server = await serveHandler(listener, {})
    options.baseUrl = server.url
  })
  afterAll(async () => {
    await Promise.all([server.close(), hw.close()])
  })

  runConformanceTests(options)
}
