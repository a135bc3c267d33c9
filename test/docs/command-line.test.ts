// @module-tag slow

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { expect, it, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { headwaterProgram, TOPICS } from '../../adapters/cli/program.ts'
import { ended, program } from '../cli/program.ts'
import { resultOf } from '../cli/run.ts'
import { PROJECT, section } from './examples.ts'

const headwater = program()

/** The commands as the user writes them, such as `token issue`. */
function pathsOf(command: CommandUnknownOpts, path = ''): string[] {
  const { commands } = command
  return commands
    .filter((one) => one.name() !== 'complete')
    .flatMap((one) => {
      const own = `${path} ${one.name()}`.trim()
      return [own, ...pathsOf(one, own)]
    })
}

async function sectionOf(title: string, args: string): Promise<string> {
  const { out } = await resultOf(args.split(' '))
  return `## ${title}\n\n\`\`\`text\n${out.join('\n')}\n\`\`\`\n`
}

it('docs/cli.md contains the help of every command', async () => {
  const path = join(PROJECT, 'docs/cli.md')
  const [introduction] = (await readFile(path, 'utf8')).split('## Overview')
  const sections = await Promise.all([
    sectionOf('Overview', '--help'),
    ...[...TOPICS.keys()].map((topic) => sectionOf(`help ${topic}`, `help ${topic}`)),
    ...pathsOf(headwaterProgram({ env: {} } as CliContext)).map((name) => sectionOf(name, `${name} --help`)),
  ])
  // `npx vitest run --project all test/docs/command-line -u` updates the page.
  await expect(`${introduction}${sections.join('\n')}`).toMatchFileSnapshot(path)
})

it('the commands in docs/server.md print the documented output', async () => {
  const blocks = (await section('docs/server.md', 'On the command line')).matchAll(
    /^```console\n([\s\S]*?)^```$/gm,
  )
  const [writing, following] = [...blocks].map(([, text]) => text!)
  const log = Array.from({ length: 100_000 }, (_, i) => `GET /cart/${i + 1} 200\n`).join('')
  await writeFile(join(headwater.directory, 'big.log'), log)

  const server = headwater.start(['serve', '--no-auth', '--port', '0', '--storage', 'memory'])
  onTestFinished(() => void server.kill('SIGKILL'))
  const [welcome] = await once(server.stdout!, 'data')
  const env = { HEADWATER_URL: /http:\S+/.exec(String(welcome))![0] }

  const [first, second] = stepsOf(writing!)
  const [follow] = stepsOf(following!)
  expect(await printedBy(first!.command, env)).toBe(first!.output)
  const follower = headwater.start(follow!.command.split(' ').slice(1), env)
  onTestFinished(() => void follower.kill('SIGKILL'))
  let followed = ''
  follower.stdout!.on('data', (chunk) => {
    followed += chunk
  })
  await once(follower.stdout!, 'data')
  expect(await printedBy(second!.command, env)).toBe(second!.output)
  const expected = follow!.output.replace('...\n', '')
  await expect.poll(() => followed).toContain('checkout')
  expect(followed.endsWith(expected)).toBe(true)
})

/** The commands of a recorded terminal, with what each prints. */
function stepsOf(text: string): { readonly command: string; readonly output: string }[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const end = step.indexOf('\n')
      return { command: step.slice(0, end), output: step.slice(end + 1) }
    })
}

/** Runs `cat FILE | headwater ...` or `echo 'TEXT' | headwater ...`. */
async function printedBy(command: string, env: Readonly<Record<string, string>>): Promise<string> {
  const [, file, text, args] = /^(?:cat (\S+)|echo '(.+)') \| headwater (.+)$/.exec(command)!
  const child = headwater.start(args!.split(' '), env)
  child.stdin!.end(file === undefined ? `${text}\n` : await readFile(join(headwater.directory, file)))
  const { code, out, err } = await ended(child)
  expect(code).toBe(0)
  return `${out}${err}`
}
