import { EventEmitter } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { open } from '../../src/index.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'
import { DRIVERS } from '../storage/sqlite/databases.ts'
import { bundleProgram, Child } from '../support/child-process.ts'
import { byteOutput, fakeTerminal, resultOf, run } from './run.ts'

describe('headwater verify', () => {
  it('prints each problem on a line, with file, offset and stream, and exits with code 1', async () => {
    const { directory, file } = await damaged()
    const problem = expect.stringMatching(
      new RegExp(`^${file} at \\d+: a group is damaged, and others follow`),
    )
    const { exitCode, out, err } = await resultOf(['verify', directory])
    expect([exitCode, err]).toEqual([1, ['headwater: 1 problem found']])
    expect(out).toContainEqual(problem)
    expect(out.at(-1)).toMatch(/^Damaged: 1 problem\. Read 1 file/)
    expect(await resultOf(['verify', '--quiet', directory])).toMatchObject({ exitCode: 1, out: [problem] })
    const { out: json } = await resultOf(['verify', directory, '--json'])
    expect(json.map((line) => JSON.parse(line))).toMatchObject([
      {
        files: 1,
        problems: [{ file, offset: expect.any(Number), problem: expect.any(String) }],
      },
    ])
  })

  it('draws a progress bar on a terminal and removes it', { tags: ['slow'] }, async () => {
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

  it('stops at a signal and releases the directory', async () => {
    const directory = await written()
    const before = await readdir(directory)
    const signals = new EventEmitter()
    // As soon as the command listens.
    signals.once('newListener', () => queueMicrotask(() => signals.emit('SIGINT')))
    const { exitCode, err, out } = run(['verify', directory], { signals })
    expect(await exitCode).toBe(130)
    expect([out, err]).toEqual([[], ['headwater: stopped before everything was read']])
    expect(signals.eventNames()).toEqual([])
    expect(await readdir(directory)).toEqual(before)
  })

  it.each([
    ['verify', (directory: string) => [directory]],
    ['export', (directory: string) => ['--storage', directory]],
    ['serve', (directory: string) => ['--storage', directory, '--no-auth']],
  ])('names the process that has the directory open: %s', { tags: ['slow'] }, async (command, argsOf) => {
    const directory = await written()
    const program = new URL('../storage/filesystem/children/holder.ts', import.meta.url)
    const holder = new Child(await bundleProgram(program), [directory])
    onTestFinished(() => holder.kill())
    await holder.printed(1)
    const { exitCode, err } = run([command, ...argsOf(directory)], {
      storages: { memory, filesystem, sqlite: memory, postgres: memory, s3: memory },
    })
    expect(await exitCode).toBe(1)
    const message = `^headwater: ${directory} is open in process ${holder.pid} on (?!.*remove)`
    expect(err).toEqual([expect.stringMatching(new RegExp(message))])
  })
})

// Node 22 and later have SQLite.
it.skipIf(Object.keys(DRIVERS).length === 0)(
  '`--storage sqlite:FILE` keeps streams in a file, and rejects a missing one',
  { tags: ['slow'] },
  async () => {
    const file = join(await temporaryDirectory(), 'streams.db')
    const read = async () => {
      const { output, lines } = byteOutput()
      const storages = { memory, filesystem, sqlite, postgres: memory, s3: memory }
      const args = ['read', 'my-basin/events', '--storage', `sqlite:${file}`]
      return { ...(await resultOf(args, { storages, output })), lines: lines() }
    }
    expect(await read()).toMatchObject({
      exitCode: 1,
      err: [expect.stringContaining('streams.db` does not exist')],
    })
    const hw = await open({ storage: sqlite(file) })
    await hw.basin('my-basin').stream('events').append('one')
    await hw.close()
    expect(await read()).toMatchObject({ exitCode: 0, lines: ['one'] })
  },
)

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
