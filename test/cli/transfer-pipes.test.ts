// @module-tag slow

import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { ended, program } from './program.ts'

const headwater = program()
const at = (name: string) => join(headwater.directory, name)

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a shell script in the directory of the test. It calls the program as `headwater`. */
function shell(script: string): Promise<Outcome> {
  const body = `headwater() { "${process.execPath}" "${at('main.mjs')}" "$@"; }\n${script}`
  const options = { cwd: headwater.directory, env: { PATH: process.env.PATH } }
  return promisify(execFile)('bash', ['--norc', '-c', body], options).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
}

function exportOf(basin: string, records: number): string {
  const tail = { seq_num: records, timestamp: 9 }
  const lines = [
    { headwater_export: 1, exported_at: '2030-01-01T00:00:00Z' },
    { basin, config: {} },
    { stream: 's', basin, config: {}, cipher: null, start: 0, tail, fencing_token: null },
    ...Array.from({ length: records }, (_, i) => ({ seq_num: i, timestamp: 9, body: 'x'.repeat(100) })),
    { stream_end: 's', records },
    { export_end: { basins: 1, streams: 1, records } },
  ]
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}

describe.skipIf(process.platform === 'win32' /* it has no bash */)('in a shell', () => {
  beforeAll(async () => {
    await writeFile(at('a.ndjson'), exportOf('basin-a', 100))
    await writeFile(at('b.ndjson'), exportOf('basin-b', 100))
    expect(await shell('headwater import a.ndjson --dir source')).toMatchObject({ code: 0 })
  })

  it('an export fails if it is redirected to a file that cannot hold it', async () => {
    const { code, stderr } = await shell('ulimit -f 4; headwater export --dir source > part')
    expect(await readFile(at('part'), 'utf8')).not.toContain('export_end')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^headwater: cannot write to standard output: EFBIG.*\n$/)
  })

  it('an export redirected with >> is complete and is appended to the file', async () => {
    const script = 'echo before > whole; headwater export --dir source >> whole; echo behind >> whole'
    expect(await shell(script)).toMatchObject({
      code: 0,
      stderr: 'Exported 1 basin, 1 stream, 100 records\n',
    })
    const lines = (await readFile(at('whole'), 'utf8')).trimEnd().split('\n')
    expect([lines[0], lines.at(-2), lines.at(-1)]).toEqual([
      'before',
      '{"export_end":{"basins":1,"streams":1,"records":100}}',
      'behind',
    ])
    expect(lines).toHaveLength(107)
  })

  it.skipIf(process.platform !== 'linux' /* the device is Linux's */)(
    'an export to a full device fails with one line',
    async () => {
      const { code, stderr } = await shell('headwater export --dir source > /dev/full')
      expect(code).toBe(1)
      expect(stderr).toMatch(/^headwater: cannot write to standard output: ENOSPC.*\n$/)
    },
  )

  it('an export to /dev/null succeeds', async () => {
    expect(await shell('headwater export --dir source > /dev/null')).toMatchObject({ code: 0 })
  })

  it('an export without a reader prints no summary', async () => {
    const { code, stderr } = await shell('set -o pipefail; headwater export --dir source | exec 0<&-')
    expect(code).toBe(0)
    expect(stderr).toBe('')
  })

  it.each([
    ['a process substitution', 'headwater import <(cat b.ndjson) --dir substituted'],
    ['standard input by its name', 'cat b.ndjson | headwater import /dev/stdin --dir by-name'],
    ['a file as standard input by its name', 'headwater import /dev/stdin --dir from-file < b.ndjson'],
    ['a named pipe', 'mkfifo pipe; cat b.ndjson > pipe & headwater import pipe --dir piped'],
  ])('%s is imported into a directory that has a basin', async (_, script) => {
    const directory = script.match(/--dir (\S+)/)![1]!
    expect(await ended(headwater.start(['import', at('a.ndjson'), '--dir', at(directory)]))).toMatchObject({
      code: 0,
    })
    expect(await shell(script)).toMatchObject({
      code: 0,
      stderr: 'Imported 1 basin, 1 stream, 100 records\n',
    })
  })
})
