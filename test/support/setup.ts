import { availableParallelism, loadavg } from 'node:os'
import { afterAll, afterEach, beforeEach, vi } from 'vitest'
import { cleanUpAfterFile } from './after-file.ts'
import './compare-bytes.ts'
import { assertOriginalGlobals } from './original-globals.ts'
import './patience.ts'

// Vitest runs this before each file, and the modules that it imports once in a process.

/** Reporters print all of a title. */
const TITLE_CHARACTERS_MAX = 200

/**
 * The CPU time that a test in `npm test` may take, in milliseconds. The duration depends even more on what else
 * the machine does; while it does much, calls of the system take longer too, and nothing is checked.
 */
const CPU_MS_MAX = 250

const IS_QUICK_RUN = process.env.TEST_RUN === 'quick'

let cpuAtStart = process.cpuUsage()

beforeEach(({ expect, task: { name } }) => {
  if (name.length > TITLE_CHARACTERS_MAX) expect.fail(`the title has ${name.length} characters`)
  cpuAtStart = process.cpuUsage()
})
afterEach(({ expect }) => {
  const cpuMs = cpuMsSince(cpuAtStart)
  if (!IS_QUICK_RUN || cpuMs <= CPU_MS_MAX || isBusy() || cpuMs <= CPU_MS_MAX * slowness()) return
  expect.fail(`the test took ${cpuMs} ms of CPU; over ${CPU_MS_MAX} ms it needs the tag "slow"`)
})
afterAll(async () => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  await cleanUpAfterFile()
  assertOriginalGlobals()
})

function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return Math.round((user + system) / 1000)
}

/** Whether other programs take the cores, beside the workers of the tests. */
function isBusy(): boolean {
  return loadavg()[0]! > 2.5 * availableParallelism()
}

/** The CPU time of a fixed amount of work on the machine that the limit was set on, in milliseconds. */
const WORK_MS = 65

/** Returns how many times slower this machine is, 1 at least. */
function slowness(): number {
  // The first runs include the compilation.
  const [, , cpuMs] = [work(), work(), work()]
  return Math.max(1, cpuMs! / WORK_MS)
}

function work(): number {
  const start = process.cpuUsage()
  let sum = 0
  for (let i = 0; i < 40_000_000; i++) sum = (sum * 31 + (i ^ (sum >>> 7))) | 0
  return cpuMsSince(start) + (sum === 0 ? 1 : 0)
}
