// @module-tag slow

import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiReports } from '../../scripts/api-reports.mjs'

/** The reports of declaration files. */
async function reportsOf(files: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-api-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, `${name}.d.ts`), text)
  return apiReports(Object.keys(files).map((name) => [name, join(directory, `${name}.d.ts`)] as const))
}

const stream = `/** A stream. */\nexport declare class Stream {\n  #private;\n  private x;\n  read(): void;\n}\n`

describe('the report of an entry', () => {
  it('has declarations without comments and private members', async () => {
    const report = (await reportsOf({ main: stream })).get('main')
    expect(report).toContain('class Stream {\n    read(): void;\n}')
  })

  it('changes with the type of a member', async () => {
    const before = await reportsOf({ main: stream })
    const after = await reportsOf({ main: stream.replace('void', 'string') })
    expect(after.get('main')).not.toBe(before.get('main'))
  })

  it('has what its exports refer to', async () => {
    const text = `interface Options { limit: number }\nexport declare function open(options: Options): void;\nexport {};\n`
    const report = (await reportsOf({ main: text })).get('main')
    const [exported, referred] = report!.split('## Not exported, but referred to')
    expect(exported).not.toContain('interface Options')
    expect(referred).toContain('interface Options {\n    limit: number;\n}')
  })

  it('names what another entry declares, instead of repeating it', async () => {
    const reports = await reportsOf({ main: stream, other: `export { Stream } from './main.js'\n` })
    expect(reports.get('other')).toContain('- `Stream` of `main`')
    expect(reports.get('other')).not.toContain('read(): void')
  })
})
