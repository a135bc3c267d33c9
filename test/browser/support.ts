import type { IncomingMessage } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { HandlerOptions, RequestExchange as ServedExchange } from '../../adapters/http/index.ts'
import type { NodeServer } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { serveObserved } from '../support/observed-server.ts'
import { openCountsOf } from '../support/open-counts.ts'
import { reservedPort } from '../support/port.ts'
import { type BrowserOptions, describeInChromium, type SuiteBrowser, suiteBrowser } from './chromium.ts'
import type * as WorkerCaller from './pages/worker-caller.ts'
import { type StaticServer, servePages } from './static-servers.ts'

export interface Browser extends SuiteBrowser {
  /** The origin of the pages. */
  readonly origin: string
  /** Opens an empty page, `/` or `/wasm`, of this origin (see `servePages`), or another page. */
  page(path?: string): Promise<Page>
}

/** A suite in Chromium with new user data. Without Chromium it is skipped, or fails if `CI` is set. */
export function inChromium(
  title: string,
  suite: (browser: Browser) => void,
  options: BrowserOptions = {},
): void {
  describeInChromium(title, () => {
    let pages: StaticServer
    beforeAll(async () => {
      pages = await servePages()
    })
    afterAll(() => pages?.close())
    const browser = suiteBrowser(options)
    suite({
      get origin() {
        return pages.url
      },
      get context() {
        return browser.context
      },
      page: (path = '/') => browser.page(new URL(path, pages.url).href),
      restart: browser.restart,
    })
  })
}

type Exports = Readonly<Record<string, (...args: never[]) => unknown>>

/** The functions of a script of `pages/`, called remotely. Arguments and results are cloned. */
export type Remote<Script extends Exports> = {
  readonly [Name in keyof Script]: (
    ...args: Parameters<Script[Name]>
  ) => Promise<Awaited<ReturnType<Script[Name]>>>
}

/** Loads a script of `pages/` into a page. */
export async function scriptIn<Script extends object>(
  page: Page,
  script: string,
): Promise<Remote<Script & Exports>> {
  // As a string, because the transformation of this file would replace `import()`.
  const module = await page.evaluateHandle<Exports>(`import('/${script}.js')`)
  return remote((name, args) =>
    module.evaluate((exports, call) => exports[call.name]!(...(call.args as never[])), { name, args }),
  )
}

/** Loads a script into a worker that lives as long as the page, and keeps its state between calls. */
export async function scriptInWorker<Script extends object>(
  page: Page,
  script: string,
): Promise<Remote<Script & Exports>> {
  const { call } = await scriptIn<typeof WorkerCaller>(page, 'worker-caller')
  return remote((name, args) => call({ path: `/${script}.js`, name, args }))
}

function remote<Script extends Exports>(
  call: (name: string, args: readonly unknown[]) => Promise<unknown>,
): Remote<Script> {
  // Must not look like a thenable.
  const get = (_: object, name: string) =>
    name === 'then' ? undefined : (...args: unknown[]) => call(name, args)
  return new Proxy({}, { get }) as Remote<Script>
}

/** A request from the browser and the status of its response. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly status: number
}

/** An engine behind a server with a separate origin. */
export interface Service {
  readonly hw: Engine
  readonly url: string
  readonly exchanges: readonly Exchange[]
  /** The address of a basin by subdomain, because `EventSource` cannot send headers. */
  urlOf(basin: string): string
  /** Drops all connections and listens again on the same port. */
  restart(): Promise<void>
  /** Counts of what is open in the engine and the server, without cached streams. */
  open(): Readonly<Record<string, number>>
  /** Resolves when nothing is open. */
  idle(): Promise<void>
}

/** Starts a service that is closed after the test, which fails if there were internal errors. */
export async function startService(options: HandlerOptions = { auth: 'none', cors: true }): Promise<Service> {
  const hw = await open({ storage: memory() })
  const errors: unknown[] = []
  const exchanges: Exchange[] = []
  const onError = (error: unknown) => void errors.push(error)
  const onReply = ({ method, path, source }: ServedExchange, { status }: { readonly status: number }) => {
    const headers = new Headers((source as IncomingMessage).headers as Record<string, string>)
    exchanges.push({ method, path, headers, status })
  }
  const port = await reservedPort()
  const listen = (): Promise<NodeServer> => serveObserved(hw, { ...options, port, onError }, { onReply })
  let server = await listen()
  const { url } = server
  const openNow = () => ({ ...openCountsOf(hw), requests: server.counts().requests })
  const idle = () => expect.poll(() => Object.entries(openNow()).filter(([, count]) => count > 0)).toEqual([])
  onTestFinished(async () => {
    // Closing the engine ends the sessions that the server would wait for.
    await Promise.all([server.close({ graceMs: 1_000 }), hw.close()])
    expect(errors).toEqual([])
  })
  return {
    hw,
    url,
    exchanges,
    urlOf: (basin) => `http://${basin}.localhost:${port}`,
    async restart() {
      await server.close({ graceMs: 0 })
      server = await listen()
    },
    open: openNow,
    idle,
  }
}
