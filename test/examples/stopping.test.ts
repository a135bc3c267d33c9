// @module-tag slow

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const EXAMPLES = join(import.meta.dirname, '..', '..', 'examples')
const urlOf = (...path: string[]) => JSON.stringify(pathToFileURL(join(EXAMPLES, ...path)).href)

function isRunning(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
}

it.each([
  ['work-queue', 'SIGTERM'],
  ['work-queue', 'SIGINT'],
  ['live-logs', 'SIGTERM'],
] as const)('%s ends with all processes that it has started on %s', async (name, signal) => {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-stopping-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const script = `
    import { startServer } from ${urlOf(name, 'server.mjs')}
    import { closeOnSignal } from ${urlOf('shared', 'start-app.mjs')}
    const app = await startServer({ files: '.', port: 0, data: ${JSON.stringify(join(directory, 'data'))} })
    closeOnSignal(app)
    console.log('at ' + app.url)`
  const args = ['--input-type=module', '--eval', script]
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const group = child.pid!
  onTestFinished(() => {
    if (isRunning(group)) process.kill(-group, 'SIGKILL')
  })
  let output = ''
  while (!output.includes('at http')) output += String((await once(child.stdout, 'data'))[0])
  // To the example alone: a supervisor sends no signal to its children.
  child.kill(signal)
  expect(await once(child, 'exit')).toEqual([0, null])
  await expect.poll(() => isRunning(group)).toBe(false)
})
