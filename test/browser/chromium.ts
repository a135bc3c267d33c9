import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

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

/** A running browser. */
interface Launched {
  readonly context: BrowserContext
  close(): Promise<void>
  /** Only of {@link launchProcess}. */
  kill?(): Promise<void>
}

/** Starts a browser on a directory of user data, with further arguments. */
type Launch = (directory: string, args: readonly string[]) => Promise<Launched>

export interface BrowserOptions {
  readonly args?: readonly string[]
  readonly launch?: Launch
  /** The message of uncaught errors that do not fail a test. */
  readonly expected?: RegExp
}

/** The browser of a suite. */
export interface SuiteBrowser {
  readonly context: BrowserContext
  /** Opens a page. It is closed after the test, which fails if the page had an uncaught error. */
  page(url: string): Promise<Page>
  /** Closes or kills the browser, and starts it again with the same user data. */
  restart(how?: 'close' | 'kill'): Promise<void>
}

/** Runs a browser with new user data during the current suite. */
export function suiteBrowser(options: BrowserOptions = {}): SuiteBrowser {
  const { args = [], launch: start = launch, expected } = options
  let directory: string
  let launched: Launched | undefined
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headwater-browser-'))
    launched = await start(directory, args)
  })
  afterAll(async () => {
    await launched?.close()
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  })
  return {
    get context() {
      return launched!.context
    },
    async page(url) {
      const page = await launched!.context.newPage()
      const thrown: Error[] = []
      page.on('pageerror', (error) => thrown.push(error))
      onTestFinished(async () => {
        await page.close()
        expect(thrown.filter(({ message }) => !expected?.test(message))).toEqual([])
      })
      await page.goto(url)
      return page
    },
    async restart(how = 'close') {
      await launched![how]!()
      launched = await start(directory, args)
    },
  }
}

const launch: Launch = async (directory, args) => {
  const context = await chromium.launchPersistentContext(directory, {
    executablePath,
    args: [...ARGUMENTS, ...args],
    headless: true,
  })
  context.setDefaultTimeout(PATIENCE_MS)
  return { context, close: () => context.close() }
}

/**
 * Starts a separate browser process, which can be killed. Its background tabs are hidden, while Playwright
 * makes all tabs of browsers that it launches itself believe that they are visible.
 */
export const launchProcess: Launch = async (directory, args) => {
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
  return { context, close: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}

/** Freezes a page, as browsers do with hidden ones, or resumes it. */
export async function setLifecycle(page: Page, state: 'frozen' | 'active'): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state })
  await session.detach()
}
