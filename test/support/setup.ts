import { afterAll, beforeEach, vi } from 'vitest'
import { cleanUpAfterFile } from './after-file.ts'
import './compare-bytes.ts'
import { assertOriginalGlobals } from './original-globals.ts'
import './patience.ts'

// Vitest runs this before each file, and the modules that it imports once in a process.

/** Reporters print all of a title. */
const TITLE_CHARACTERS_MAX = 200

beforeEach(({ expect, task: { name } }) => {
  if (name.length > TITLE_CHARACTERS_MAX) expect.fail(`the title has ${name.length} characters`)
})
afterAll(async () => {
  vi.restoreAllMocks()
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.unstubAllEnvs()
  await cleanUpAfterFile()
  assertOriginalGlobals()
})
