import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { KNOWN_STORAGES } from '../../adapters/cli/known-storages.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { open } from '../../src/index.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { resultOf, run } from './run.ts'
import { fakeTerminal } from './terminal.ts'

describe('headwater verify', () => {
  it('says that a directory is sound, and what it holds', async () => {
    const directory = await written()
    expect(await resultOf(['verify', directory])).toEqual({
      exitCode: 0,
      out: [
        expect.stringMatching(
          /^Sound\. Read 1 file with [\d.]+ KiB: \d+ documents, 1 log, 1 block, 2 records$/,
        ),
      ],
      err: [],
    })
  })

  it('does not take a directory for sound or damaged to which nothing was written', async () => {
    const directory = await temporaryDirectory()
    const err = [`headwater: nothing was written to ${directory} yet, if it is the right one`]
    const summary = expect.stringMatching(/^Empty\. Read 0 files/)
    expect(await resultOf(['verify', directory])).toEqual({ exitCode: 3, out: [summary], err })
    const { exitCode, out } = await resultOf(['verify', directory, '--json'])
    expect([exitCode, JSON.parse(out[0]!).files]).toEqual([3, 0])
    expect(await resultOf(['verify', directory, '--quiet'])).toEqual({ exitCode: 3, out: [], err })
  })

  it('tells each problem on a line, with file, offset and stream, and ends with code 1', async () => {
    const { directory, file } = await damaged()
    const { exitCode, out, err } = await resultOf(['verify', directory])
    expect(exitCode).toBe(1)
    expect(out).toContainEqual(
      expect.stringMatching(new RegExp(`^${file} at \\d+: a group is not whole, and others`)),
    )
    expect(out).toContainEqual(expect.stringMatching(/^Note: .*something is lost/))
    expect(out.at(-1)).toMatch(/^Damaged: 1 problem\. Read 1 file/)
    expect(err).toEqual(['headwater: 1 problem found'])
  })

  it('with --quiet tells problems only', async () => {
    expect(await resultOf(['verify', await written(), '--quiet'])).toEqual({ exitCode: 0, out: [], err: [] })
    const { directory } = await damaged()
    const { exitCode, out } = await resultOf(['verify', '--quiet', directory])
    expect([exitCode, out]).toEqual([1, [expect.stringContaining('a group is not whole')]])
  })

  it('with --json prints the report', async () => {
    const { directory, file } = await damaged()
    const { exitCode, out } = await resultOf(['verify', directory, '--json'])
    expect([exitCode, out.length]).toEqual([1, 1])
    expect(JSON.parse(out[0]!)).toMatchObject({
      files: 1,
      problemCount: 1,
      problems: [{ file, offset: expect.any(Number), problem: expect.any(String) }],
    })
  })

  it('draws a bar where standard error is a terminal, and takes it off again', async () => {
    const directory = await written()
    const { terminal, drawn } = fakeTerminal()
    const { out, err } = await resultOf(['verify', directory], { terminal })
    expect(drawn()).toContain('Verifying')
    expect(drawn()).toContain('100%')
    expect(drawn().endsWith('\u001b[2K')).toBe(true)
    expect([out.length, err]).toEqual([1, []])
    for (const option of ['--quiet', '--json']) {
      const other = fakeTerminal()
      await resultOf(['verify', directory, option], { terminal: other.terminal })
      expect(other.drawn()).toBe('')
    }
  })

  it('stops at a signal, and gives the directory up', async () => {
    const directory = await written()
    const before = await readdir(directory)
    const { signals, exitCode, err, out } = run(['verify', directory])
    signals.emit('SIGINT')
    expect(await exitCode).toBe(1)
    expect([out, err]).toEqual([[], ['headwater: stopped before all was read']])
    expect(signals.eventNames()).toEqual([])
    expect(await readdir(directory)).toEqual(before)
  })

  it.each([
    ['verify', (directory: string) => [directory]],
    ['export', (directory: string) => ['--dir', directory]],
    ['serve', (directory: string) => ['--dir', directory, '--open']],
  ])('says once who has the directory open, as %s does', async (command, argsOf) => {
    const directory = await written()
    const hw = await open({ storage: filesystem(directory) })
    onTestFinished(() => hw.close())
    const { exitCode, err } = run([command, ...argsOf(directory)], { storages: KNOWN_STORAGES })
    expect(await exitCode).toBe(1)
    const holder = `${directory} is open in process ${process.pid} on .*`
    const remedy = 'If that process is gone for certain, remove .*/owner-[0-9a-f-]+'
    expect(err).toEqual([expect.stringMatching(new RegExp(`^headwater: ${holder}\\. ${remedy}$`))])
  })

  it.each([
    [['/nowhere/at all'], 1, 'there is no directory /nowhere/at all'],
    [[], 2, 'verify needs DIR. See headwater verify --help'],
    [['a', 'b'], 2, 'verify takes one DIR, but more was given. See headwater verify --help'],
    [['a', '--loud'], 2, 'unknown option --loud. See headwater verify --help'],
    [[''], 2, 'DIR must not be empty'],
  ])('refuses %j with code %i', async (args, exitCode, message) => {
    expect(await resultOf(['verify', ...args])).toEqual({ exitCode, out: [], err: [`headwater: ${message}`] })
  })

  it('has help', async () => {
    const { out } = await resultOf(['verify', '--help'])
    for (const word of ['DIR', '--json', '--quiet', 'Exit code']) expect(out.join('\n')).toContain(word)
  })
})

async function written(): Promise<string> {
  const directory = await temporaryDirectory()
  const hw = await open({ storage: filesystem(directory) })
  await hw.basin('my-app').stream('a').append(['one', 'two'])
  await hw.close()
  return directory
}

async function damaged(): Promise<{ readonly directory: string; readonly file: string }> {
  const directory = await written()
  const file = (await readdir(directory)).find((name) => name.startsWith('journal'))!
  const content = await readFile(join(directory, file))
  content[100]! ^= 1
  await writeFile(join(directory, file), content)
  return { directory, file }
}
