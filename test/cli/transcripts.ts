import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, expect, onTestFinished } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { millisecondsIn } from '../../adapters/testing/virtual-clock.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { type Clock, systemClock } from '../../src/index.ts'
import { byteOutput, ROOT_TOKEN, run, service } from './run.ts'

/** A part of a file of `transcripts/`, whose README describes them. */
export interface Scenario {
  readonly title: string
  readonly steps: readonly Step[]
}

interface Step {
  readonly command: string
  expected: readonly string[]
}

/** What the commands of a scenario work on, besides the directory `$DIR`. */
export interface Place {
  /** Options that are added to each command, before `--`. */
  readonly options?: readonly string[]
  readonly world: Partial<CliContext>
  /** How long streams are kept by default. */
  readonly retention?: string
}

const STORAGE = tmpdir()

export const PLACES = {
  nothing: async (): Promise<Place> => ({ world: {} }),
  'a server': async (clock: Clock): Promise<Place> => {
    const { world } = await service({ open: true, clock })
    return { world, retention: 'for 7 days' }
  },
  'a server with tokens': async (clock: Clock): Promise<Place> => {
    const { world } = await service({ clock })
    return { world: { ...world, env: { HEADWATER_ROOT_TOKEN: ROOT_TOKEN } } }
  },
  'a storage': async (): Promise<Place> => {
    const kept = memory()
    const storages = { memory, sqlite: memory, postgres: memory, s3: memory, filesystem: () => kept }
    return { options: ['--storage', STORAGE], world: { storages }, retention: 'forever' }
  },
} as const

const IS_UPDATE = process.env.UPDATE_TRANSCRIPTS === '1'

/** Reads a file of `transcripts/`. */
export function scenariosOf(name: string): Scenario[] {
  const path = new URL(`transcripts/${name}.txt`, import.meta.url)
  const [preface, ...parts] = readFileSync(path, 'utf8').split(/^== /m)
  const scenarios = parts.map((part) => {
    const [title, ...lines] = part.trimEnd().split('\n')
    const steps: { command: string; expected: string[] }[] = []
    for (const line of lines) {
      if (line.startsWith('$ ')) steps.push({ command: line.slice(2), expected: [] })
      else if (steps.length > 0) steps.at(-1)!.expected.push(line)
      else if (line !== '') throw new Error(`"${title}" has output before its first command`)
    }
    if (steps.length === 0) throw new Error(`"${title}" has no command`)
    return { title: title!, steps }
  })
  if (IS_UPDATE) afterAll(() => writeFileSync(path, preface + scenarios.map(textOf).join('\n')))
  return scenarios
}

function textOf({ title, steps }: Scenario): string {
  const lines = steps.flatMap(({ command, expected }) => [`$ ${command}`, ...expected])
  return [`== ${title}`, ...lines, ''].join('\n')
}

/** Runs the commands of a scenario one after the other, and compares what each of them prints. */
export async function play({ steps }: Scenario, placeOf: (clock: Clock) => Promise<Place>) {
  let now = Date.UTC(2025, 0, 1)
  // Only `sleep` lets time pass.
  const clock = { ...systemClock, now: () => now }
  const place = await placeOf(clock)
  const variables: Record<string, string> = {}
  if (steps.some(({ command }) => command.includes('$DIR'))) {
    variables.DIR = await mkdtemp(join(tmpdir(), 'headwater-transcript-'))
    onTestFinished(() => rm(variables.DIR!, { recursive: true }))
  }
  for (const step of steps) {
    const { command, expected } = step
    if (command.startsWith('sleep ')) {
      now += millisecondsIn(command.slice('sleep '.length))
      continue
    }
    const [, variable, inner] = /^(\w+)=\$\((.*)\)$/.exec(command) ?? []
    const actual = await outputOf(inner ?? command, { clock, place, variables })
    if (variable !== undefined) variables[variable] = actual.shift() ?? ''
    const pattern = patternOf(expected, place)
    if (pattern.test(actual.map((line) => `${line}\n`).join(''))) continue
    if (IS_UPDATE) step.expected = actual
    // The comparison of the lines shows a readable difference.
    else expect([`$ ${command}`, ...actual]).toEqual([`$ ${command}`, ...expected])
  }
}

interface Surroundings {
  readonly clock: Clock
  readonly place: Place
  readonly variables: Readonly<Record<string, string>>
}

/** The lines of standard output, those of standard error after `! `, and the exit code unless it is 0. */
async function outputOf(command: string, { clock, place, variables }: Surroundings): Promise<string[]> {
  const words = wordsOf(command, variables)
  const input = words[0] === 'printf' ? words.splice(0, words.indexOf('|') + 1)[1]! : ''
  // A character for each byte.
  const bytes = unescaped(Buffer.from(input).toString('latin1'))
  const env: Record<string, string> = {}
  for (let name = assigned(words); name !== undefined; name = assigned(words)) {
    env[name] = words.shift()!.slice(name.length + 1)
  }
  if (words.shift() !== 'headwater') throw new Error(`\`${command}\` does not run headwater`)
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const { output, text } = byteOutput()
  const started = run([...words.slice(0, end), ...(place.options ?? []), ...words.slice(end)], {
    storages: { memory, filesystem, sqlite, postgres: memory, s3: memory },
    clock,
    // A second of `bench` takes ten milliseconds.
    now: () => 100 * performance.now(),
    ...place.world,
    env: { ...place.world.env, ...env },
    input: () => Readable.from([Buffer.from(bytes, 'latin1')]),
    output,
  })
  if (words[0] === 'serve') void started.ready().then(() => started.signals.emit('SIGTERM'))
  const exitCode = await started.exitCode
  const printed = started.out.map((line) => `${line}\n`).join('') + text()
  const lines = printed.split('\n')
  if (lines.at(-1) === '') lines.pop()
  else lines[lines.length - 1] += '<no line feed>'
  for (const line of started.err) lines.push(...line.split('\n').map((part) => `! ${part}`))
  if (exitCode !== 0) lines.push(`[${exitCode}]`)
  return lines.map((line) => visible(line, variables))
}

/** Without control characters, and without the path of the directory, which is another one in each run. */
function visible(line: string, { DIR = '\n' }: Readonly<Record<string, string>>): string {
  const codeOf = (character: string) => character.charCodeAt(0).toString(16).padStart(2, '0')
  return line.replaceAll(DIR, '$DIR').replace(/(?!\t)\p{Cc}/gu, (character) => `\\x${codeOf(character)}`)
}

function assigned([word]: readonly string[]): string | undefined {
  return /^([A-Z_]+)=/.exec(word ?? '')?.[1]
}

/** Splits a command as a shell does: with `'…'`, `$'\n'` and `$NAME`. */
function wordsOf(command: string, variables: Readonly<Record<string, string>>): string[] {
  return [...command.matchAll(/(?:\$?'[^']*'|[^\s'])+/g)].map(([word]) =>
    word.replace(/(\$?)'([^']*)'|\$([A-Z]+)/g, (whole, ansi, quoted, name) => {
      if (name !== undefined) return variables[name] ?? whole
      return ansi === '$' ? unescaped(quoted) : quoted
    }),
  )
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '\\': '\\' }

function unescaped(text: string): string {
  return text.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (whole, code, letter) =>
    code === undefined ? (ESCAPES[letter] ?? whole) : String.fromCharCode(Number.parseInt(code, 16)),
  )
}

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  any: '.*',
  number: '[\\d.,]+',
  token: '[\\w+/=-]{20,}',
  uuid: '[0-9a-f-]{36}',
  url: 'http://(?:127\\.0\\.0\\.1|localhost):\\d+',
}

function patternOf(expected: readonly string[], place: Place): RegExp {
  const placeholders: Readonly<Record<string, string>> = {
    ...PLACEHOLDERS,
    retention: place.retention ?? '',
    version: packageJson.version.replaceAll('.', '\\.'),
  }
  const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  const lines = expected.map((line) => {
    if (line === '...') return '(?:.*\\n)*?'
    const parts = line.split(/<(\w+)>/)
    const pattern = parts.map((part, i) => {
      if (i % 2 === 0) return literal(part)
      return placeholders[part] ?? `<${part}>`
    })
    return `${pattern.join('')}\\n`
  })
  return new RegExp(`^${lines.join('')}$`)
}
