import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { expect, vi } from 'vitest'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A browser that runs on a profile. */
export interface Launched {
  readonly context: BrowserContext
  close(): Promise<void>
}

/** How a browser is started on a profile, with further arguments. */
export type Launch<Result extends Launched = Launched> = (
  executablePath: string,
  profile: string,
  args: readonly string[],
) => Promise<Result>

export const launch: Launch = async (executablePath, profile, args) => {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: [...ARGUMENTS, ...args],
    headless: true,
  })
  return { context, close: () => context.close() }
}

/** A private window, as it were: the profile is not used, and nothing is kept. */
export const launchPrivate: Launch = async (executablePath, _, args) => {
  const browser = await chromium.launch({ executablePath, args: [...ARGUMENTS, ...args], headless: true })
  return { context: await browser.newContext(), close: () => browser.close() }
}

/** A browser of its own process, which can be killed. Its tabs are hidden when others are in front; else Playwright makes all of them believe to be. */
export const launchOnItsOwn: Launch<Launched & { kill(): Promise<void> }> = async (
  executablePath,
  profile,
  args,
) => {
  // Of a browser that was killed.
  await rm(join(profile, 'DevToolsActivePort'), { force: true })
  const debugging = ['--headless', '--remote-debugging-port=0', `--user-data-dir=${profile}`]
  const child = spawn(executablePath, [...ARGUMENTS, ...args, ...debugging, 'about:blank'], {
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  const readPort = async () => {
    const [port] = (await readFile(join(profile, 'DevToolsActivePort'), 'utf8')).split('\n')
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
