// @module-tag slow

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { PROJECT } from './examples.ts'

const run = promisify(execFile)
/** It reads `.remarkrc.json`. */
const REMARK = join(PROJECT, 'node_modules', 'remark-cli', 'cli.js')

it('every link between documents leads to a file and a section', async () => {
  const { stdout } = await run('git', ['ls-files', '*.md', ':!api', ':!test'], { cwd: PROJECT })
  const documents = stdout.trim().split('\n')
  expect(documents).toContain('docs/protocol.md')
  // It fails with a message for each link that leads nowhere.
  await run(process.execPath, [REMARK, '--frail', '--quiet', '--no-stdout', ...documents], {
    cwd: PROJECT,
  })
})
