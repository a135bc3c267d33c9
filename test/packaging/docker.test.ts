// @module-tag slow

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }

const PROJECT = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)
const INSTRUCTIONS = ['FROM', 'COPY', 'RUN', 'USER', 'WORKDIR', 'ENV', 'VOLUME', 'EXPOSE', 'CMD']

const lines = (await readFile(join(PROJECT, 'Dockerfile'), 'utf8')).trimEnd().split('\n')
/** The arguments of the only instruction with this name. */
const argumentsOf = (name: string) => {
  const found = lines.filter((line) => line.startsWith(`${name} `))
  expect(found).toHaveLength(1)
  return found[0]!.slice(name.length + 1)
}

let directory: string
let tarball: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-docker-'))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', directory], { cwd: PROJECT })
  tarball = JSON.parse(stdout)[0].filename
})
afterAll(() => rm(directory, { recursive: true, force: true }))

// Docker is not needed: each step is run as the image would run it.
describe.skipIf(process.platform === 'win32' /* the image has a POSIX shell */)('the Dockerfile', () => {
  it('has at most ten lines, all of them known instructions', () => {
    expect(lines.length).toBeLessThanOrEqual(10)
    const names = lines.filter((line) => !line.startsWith('#')).map((line) => line.split(' ')[0])
    expect(names).toEqual(INSTRUCTIONS)
  })

  it('begins with a version of Node that the package supports', () => {
    const [, major] = /^node:(\d+)-slim$/.exec(argumentsOf('FROM'))!
    const [, required] = /^>=(\d+)/.exec(packageJson.engines.node)!
    expect(Number(major)).toBeGreaterThanOrEqual(Number(required))
  })

  it('copies the file that npm pack writes', () => {
    const [pattern, target] = argumentsOf('COPY').split(' ')
    expect(tarball).toMatch(new RegExp(`^${pattern!.replaceAll('.', '\\.').replace('*', '.*')}$`))
    expect(argumentsOf('RUN')).toContain(` ${target} `)
  })

  it('installs the command, which serves the volume until it is stopped', async () => {
    const [install, ...commands] = argumentsOf('RUN').split(' && ')
    expect(commands).toEqual([
      'npm cache clean --force',
      'rm /tmp/headwater.tgz',
      `install -d -o ${argumentsOf('USER')} ${argumentsOf('VOLUME')}`,
    ])
    const prefix = join(directory, 'prefix')
    await mkdir(prefix)
    const [command, ...args] = install!.replace('/tmp/headwater.tgz', join(directory, tarball)).split(' ')
    const environment = { ...process.env, npm_config_prefix: prefix, npm_config_prefer_offline: 'true' }
    await run(command!, args, { cwd: directory, env: environment })

    const data = join(directory, 'data')
    const settings = Object.fromEntries(
      argumentsOf('ENV')
        .split(' ')
        .map((pair) => pair.split('=')),
    )
    expect(settings).toMatchObject({ HEADWATER_STORAGE: argumentsOf('VOLUME'), HEADWATER_HOST: '0.0.0.0' })
    expect(argumentsOf('EXPOSE')).toBe('8787')
    const [program, ...options] = JSON.parse(argumentsOf('CMD')) as string[]
    const server = spawn(program!, options, {
      cwd: directory,
      env: {
        PATH: `${join(prefix, 'bin')}:${process.env.PATH}`,
        ...settings,
        HEADWATER_STORAGE: data,
        HEADWATER_PORT: '0',
      },
    })
    onTestFinished(() => void server.kill('SIGKILL'))
    let messages = ''
    server.stderr.on('data', (chunk) => {
      messages += chunk
    })
    const url = await vi.waitUntil(() => /listens on (http:\S+)\n/.exec(messages)?.[1])
    const logged = once(createInterface(server.stdout), 'line')
    expect((await fetch(`${url}/health`)).status).toBe(200)
    expect(JSON.parse((await logged)[0])).toMatchObject({ method: 'GET', path: '/health', status: 200 })
    server.kill('SIGTERM')
    expect(await once(server, 'exit'), messages).toEqual([0, null])
  })
})
