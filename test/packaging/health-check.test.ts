// @module-tag slow

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'

/** Runs the health check of the image as a container does. Resolves to its exit code. */
function checkHealth(port: number): Promise<number> {
  const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')
  const [program, ...args] = JSON.parse(/^HEALTHCHECK .*?CMD (\[.*\])$/m.exec(dockerfile)![1]!) as [string]
  const env = { ...process.env, HEADWATER_PORT: String(port) }
  return new Promise((resolve) => {
    execFile(program, args, { env }, (error) => resolve(error === null ? 0 : Number(error.code)))
  })
}

it('the image reports a server as healthy while it can read its storage', async () => {
  const engine = await open({ storage: testStorage() })
  const server = await serve(engine)
  onTestFinished(() => server.close({ graceMs: 0 }))
  expect(await checkHealth(server.port)).toBe(0)
  await engine.close()
  expect(await checkHealth(server.port)).toBe(1)
  await server.close()
  expect(await checkHealth(server.port)).toBe(1)
})
