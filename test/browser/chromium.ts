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

/** The time for pages to load, and elements to appear. The machine may be busy. */
const PATIENCE_MS = 60_000

const { CHROMIUM_PATH, CI } = process.env
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = (CHROMIUM_PATH ? [CHROMIUM_PATH] : PLACES).find((path) => existsSync(path))
/** Not used if Chromium is missing. */
const executablePath = found ?? ''

/** A suite that needs Chromium. Without it, it is skipped, or fails if `CI` is set. */
export function describeInChromium(title: string, suite: () => void): void {
  if (found !== undefined) {
    describe(title, suite)
  } else if (CI) {
    it(title, () => expect.fail('Chromium was not found; set CHROMIUM_PATH'))
  } else {
    describe.skip(`${title} (skipped: Chromium was not found; set CHROMIUM_PATH)`, suite)
  }
}

/** The user data directory of a browser. */
export interface Profile {
  readonly directory: string
  remove(): Promise<void>
}

export async function newProfile(): Promise<Profile> {
  const directory = await mkdtemp(join(tmpdir(), 'headwater-browser-'))
  return { directory, remove: () => rm(directory, { recursive: true, force: true, maxRetries: 5 }) }
}

/** A running browser. */
export interface Launched {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** Starts a browser on a profile, with further arguments. */
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
  context.setDefaultTimeout(PATIENCE_MS)
  return { context, close: () => context.close() }
}

/** Opens a private window, which does not use the profile. */
export const launchPrivate: Launch = async (_, args = []) => {
  const browser = await chromium.launch({ executablePath, args: [...ARGUMENTS, ...args], headless: true })
  const context = await browser.newContext()
  context.setDefaultTimeout(PATIENCE_MS)
  return { context, close: () => browser.close() }
}

/**
 * Starts a separate browser process, which can be killed. Its background tabs are hidden, while Playwright
 * makes all tabs of browsers that it launches itself believe that they are visible.
 */
export const launchProcess: Launch<Launched & { kill(): Promise<void> }> = async (
  { directory },
  args = [],
) => {
  // Left by a browser that was killed.
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
    const port = await vi.waitFor(readPort)
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
  const context = browser.contexts()[0]!
  context.setDefaultTimeout(PATIENCE_MS)
  return {
    context,
    close: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}
