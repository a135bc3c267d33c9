import { afterAll, afterEach, beforeEach, vi } from 'vitest'
import { cleanUpAfterFile } from './after-file.ts'
import './compare-bytes.ts'
import { assertOriginalGlobals } from './original-globals.ts'
import './patience.ts'

// Vitest runs this before each file, and the modules that it imports once in a process.

/** Reporters print all of a title. */
const TITLE_CHARACTERS_MAX = 200

/** The CPU time above which a test needs the tag `slow`, in milliseconds. */
const CPU_MS_MAX = 250
/**
 * The CPU time above which it fails without. The first test in a process that uses some code pays for its
 * compilation, and any test for the garbage of others. The duration would depend on what else the machine
 * does.
 */
const CPU_MS_FAILING = 4 * CPU_MS_MAX

let cpuAtStart = process.cpuUsage()

beforeEach(({ expect, task: { name } }) => {
  if (name.length > TITLE_CHARACTERS_MAX) expect.fail(`the title has ${name.length} characters`)
  cpuAtStart = process.cpuUsage()
})
afterEach(({ expect }) => {
  const { user, system } = process.cpuUsage(cpuAtStart)
  const cpuMs = Math.round((user + system) / 1000)
  if (process.env.TEST_RUN === 'quick' && cpuMs > CPU_MS_FAILING)
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
