import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium } from 'playwright-core'
import { describe, expect, it } from 'vitest'

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
const executablePath = (CHROMIUM_PATH ? [CHROMIUM_PATH] : PLACES).find((path) => existsSync(path))

/** A suite for where there is Chromium. Elsewhere it is skipped, unless `CI` is set: then it fails. */
export function describeInChromium(title: string, suite: () => void): void {
  if (executablePath !== undefined) {
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
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) }
}

export function launchChromium(
  { directory }: Profile,
  args: readonly string[] = [],
): Promise<BrowserContext> {
  return chromium.launchPersistentContext(directory, {
    ...(executablePath !== undefined && { executablePath }),
    args: [...ARGUMENTS, ...args],
    headless: true,
  })
}
