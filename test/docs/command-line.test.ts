// @module-tag slow

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import type { CommandEntry } from '../../adapters/cli/command.ts'
import { HEADWATER, TOPICS } from '../../adapters/cli/commands.ts'
import { helpText } from '../../adapters/cli/help.ts'
import { ended, program } from '../cli/program.ts'
import { PROJECT, section } from './examples.ts'

const headwater = program()

/** The help of a command and of those below it, each in a section. */
async function sectionsOf(entry: CommandEntry, path: string): Promise<string[]> {
  const command = await entry.load()
  const name = `${path} ${entry.name}`.trim()
  const title = path === '' ? 'Overview' : name.replace('headwater ', '')
  const below = (command.commands ?? []).filter(({ name }) => name !== 'help')
  const subcommands = below.map((one) => sectionsOf(one, name))
  return [sectionOf(title, helpText(name, entry, command)), ...(await Promise.all(subcommands)).flat()]
}

function sectionOf(title: string, help: string): string {
  return `## ${title}\n\n\`\`\`text\n${stripVTControlCharacters(help)}\n\`\`\`\n`
}

it('docs/cli.md contains the help of every command', async () => {
  const path = join(PROJECT, 'docs/cli.md')
  const [introduction] = (await readFile(path, 'utf8')).split('## Overview')
  const topics = Object.entries(TOPICS).map(async ([name, text]) => sectionOf(`help ${name}`, await text()))
  const [overview, ...commands] = await sectionsOf(HEADWATER, '')
  const sections = [overview, ...(await Promise.all(topics)), ...commands]
  // `npx vitest run --project all test/docs/command-line -u` updates the page.
  await expect(`${introduction}${sections.join('\n')}`).toMatchFileSnapshot(path)
})

it('the commands in the README print the documented output', async () => {
  const blocks = (await section('README.md', 'On the command line')).matchAll(
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
