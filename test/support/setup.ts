import { afterAll, beforeEach } from 'vitest'
import { cleanUpAfterFile } from './after-file.ts'
import './compare-bytes.ts'
import './patience.ts'

// Vitest runs this before each file, and the modules that it imports once in a process.

/** Reporters print all of a title. */
const TITLE_CHARACTERS_MAX = 250

beforeEach(({ expect, task: { name } }) => {
  if (name.length > TITLE_CHARACTERS_MAX) expect.fail(`the title has ${name.length} characters`)
})
afterAll(cleanUpAfterFile)
