import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { describe, expect, it, vi } from 'vitest'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const { CHROMIUM_PATH, CI } = process.env
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = (CHROMIUM_PATH ? [CHROMIUM_PATH] : PLACES).find((path) => existsSync(path))
/** Where there is none, no suite comes so far. */
const executablePath = found ?? ''

/** A suite for where there is Chromium. Elsewhere it is skipped, unless `CI` is set: then it fails. */
export function describeInChromium(title: string, suite: () => void): void {
  if (found !== undefined) {
    describe(title, suite)
  } else if (CI) {
    it(title, () => expect.fail('there is no Chromium here: CHROMIUM_PATH tells where one is'))
  } else {
    describe.skip(`${title} (skipped: no Chromium here, CHROMIUM_PATH tells where one is)`, suite)
  }
}

/** What a browser keeps when it ends. */
export interface Profile {
  readonly directory: string
  remove(): Promise<void>
}

export async function newProfile(): Promise<Profile> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-browser-'))
  return { directory, remove: () => rm(directory, { recursive: true, force: true, maxRetries: 5 }) }
}

/** A browser that runs on a profile. */
export interface Launched {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** How a browser is started on a profile, with further arguments. */
export type Launch<Result extends Launched = Launched> = (
  profile: Profile,
  args?: readonly string[],
) => Promise<Result>

export const launch: Launch = async ({ directory }, args = []) => {
  const context = await chromium.launchPersistentContext(directory, {
    executablePath,
    args: [...ARGUMENTS, ...args],
    headless: true,
  })
  return { context, close: () => context.close() }
}

/** A private window, as it were: the profile is not used, and nothing is kept. */
export const launchPrivate: Launch = async (_, args = []) => {
  const browser = await chromium.launch({ executablePath, args: [...ARGUMENTS, ...args], headless: true })
  return { context: await browser.newContext(), close: () => browser.close() }
}

/** A browser of its own process, which can be killed. Its tabs are hidden when others are in front; else Playwright makes all of them believe to be. */
export const launchOnItsOwn: Launch<Launched & { kill(): Promise<void> }> = async (
  { directory },
  args = [],
) => {
  // Of a browser that was killed.
  await rm(join(directory, 'DevToolsActivePort'), { force: true })
  const debugging = ['--headless', '--remote-debugging-port=0', `--user-data-dir=${directory}`]
  const child = spawn(executablePath, [...ARGUMENTS, ...args, ...debugging, 'about:blank'], {
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  const readPort = async () => {
    const [port] = (await readFile(join(directory, 'DevToolsActivePort'), 'utf8')).split('\n')
    expect(port).toMatch(/^\d+$/)
    return port
  }
  const connect = async () => {
    const port = await vi.waitFor(readPort, { timeout: 15_000, interval: 20 })
    return chromium.connectOverCDP(`http://127.0.0.1:${port}`, { noDefaults: true })
  }
  const browser = await connect().catch((error) => {
    child.kill('SIGKILL')
    throw error
  })
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    child.kill(signal)
    await exited
    await browser.close()
  }
  return {
    context: browser.contexts()[0]!,
    close: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}
