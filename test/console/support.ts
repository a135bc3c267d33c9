import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { consolePage } from '../../adapters/console/page.ts'
import { type NodeServer, serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { suiteBrowser } from '../browser/chromium.ts'

export const ROOT_TOKEN = 'the-root-token-of-the-console-test'

export interface Served {
  readonly hw: Engine
  readonly url: string
  /** Opens the console at a fragment, without a token unless it is given. */
  open(fragment?: string, options?: { readonly token?: string }): Promise<Page>
}

/**
 * Serves the console for the tests of a suite, with a root token. A test fails if its page has an error,
 * violates the content security policy, or sends a request to another address.
 */
export function servedConsole(): Served {
  const browser = suiteBrowser()
  let hw: Engine
  let server: NodeServer
  beforeAll(async () => {
    hw = await open({ storage: memory(), usage: usageMetrics() })
    await hw.setRootToken(ROOT_TOKEN)
    server = await serve(hw, { port: 0, page: consolePage() })
  })
  afterAll(async () => {
    await Promise.all([server?.close(), hw?.close()])
  })
  return {
    get hw() {
      return hw
    },
    get url() {
      return server.url
    },
    async open(fragment = '', { token } = {}) {
      const page = await browser.page('about:blank')
      expectNoProblems(page, server.url)
      await page.goto(`${server.url}/${fragment}`)
      if (token !== undefined) {
        await page.getByLabel('Access token', { exact: true }).fill(token)
        await page.getByRole('button', { name: 'Connect' }).click()
      }
      return page
    },
  }
}

/** Fails the test if the page has an error or contacts another server. */
function expectNoProblems(page: Page, url: string): void {
  const problems: string[] = []
  page.on('console', (message) => {
    // The browser reports every status from 400 on; the console shows them to the user.
    if (!message.text().startsWith('Failed to load resource')) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('response', (response) => {
    // What is only missing, such as a stream on a first start, is no failed request.
    if ([404, 409, 412, 416].includes(response.status())) {
      problems.push(`${response.status()} ${response.url()}`)
    }
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) problems.push(`request to ${request.url()}`)
  })
  onTestFinished(() => expect(problems).toEqual([]))
}

/** What axe finds in the page. */
export async function violationsIn(page: Page): Promise<unknown[]> {
  // `evaluate` is exempt from the policy of the page, which forbids other scripts.
  await page.evaluate(axe.source)
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { readonly axe: typeof import('axe-core') }
    return (await axe.run()).violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
  })
}
