import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { open } from '../../src/index.ts'
import { fixturesOf } from '../compatibility/fixture.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { resultOf } from './run.ts'

const FIXTURES = fixturesOf('filesystem')

/** A directory as the release of a format version has left it. */
async function directoryOf(version: number): Promise<string> {
  const directory = await temporaryDirectory()
  const [, { data }] = FIXTURES.find(([found]) => found === version)!
  for (const [name, bytes] of Object.entries(data as Record<string, Uint8Array>)) {
    writeFileSync(join(directory, name), bytes)
  }
  return directory
}

describe('headwater upgrade', () => {
  const [oldest] = FIXTURES[0]!
  const [latest] = FIXTURES.at(-1)!

  it('names the format that it found and the one that it wrote', async () => {
    const directory = await directoryOf(oldest)
    expect(await resultOf(['upgrade', directory])).toEqual({
      exitCode: 0,
      out: [expect.stringMatching(new RegExp(`^Upgraded \\d+ files? from format ${oldest} to ${latest}$`))],
      err: [],
    })
    const verified = await resultOf(['verify', directory])
    expect(verified.out).toEqual([expect.stringMatching(new RegExp(`^Intact\\. .* of format ${latest} `))])
  })

  it('says that a directory of the present format needs no upgrade', async () => {
    const directory = await directoryOf(latest)
    const out = [`\`${directory}\` has format ${latest}: there is nothing to upgrade`]
    expect(await resultOf(['upgrade', directory])).toEqual({ exitCode: 0, out, err: [] })
    expect(await resultOf(['upgrade', directory, '--quiet'])).toEqual({ exitCode: 0, out: [], err: [] })
  })

  it('prints a report as JSON', async () => {
    const { out } = await resultOf(['upgrade', await directoryOf(oldest), '--json'])
    const report = { formatVersion: latest, formatVersionsBefore: [oldest], files: expect.any(Number) }
    expect(JSON.parse(out[0]!)).toEqual(report)
  })

  it('fails while another engine has the directory open', async () => {
    const directory = await directoryOf(latest)
    await using hw = await open({ storage: filesystem(directory) })
    expect(await hw.basin('shop').exists()).toBe(true)
    const { exitCode, err } = await resultOf(['upgrade', directory])
    expect([exitCode, err]).toEqual([1, [expect.stringMatching(/^headwater: .*open/)]])
  })

  it('exits with code 3 for a directory without data', async () => {
    const directory = await temporaryDirectory()
    const err = [`headwater: \`${directory}\` contains no data; is it the right directory?`]
    expect(await resultOf(['upgrade', directory])).toEqual({ exitCode: 3, out: [], err })
  })
})
