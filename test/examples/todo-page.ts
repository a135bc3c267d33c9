import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
// @ts-expect-error: a plain script without types
import { buildExample } from '../../examples/build.mjs'
import { Child } from '../support/child-process.ts'
import { reservedPort } from '../support/port.ts'

const EXAMPLE = join(import.meta.dirname, '..', '..', 'examples', 'shared-todo')
const SCREENSHOTS = join(import.meta.dirname, '..', '..', 'dist', 'screenshots')

/** The server of the example in a process of its own, which can be killed and started again. */
export class TodoServer {
  readonly url: string
  readonly #directory: string
  readonly #args: readonly string[]
  #process: Child | undefined

  private constructor(directory: string, port: number) {
    this.#directory = directory
    this.url = `http://localhost:${port}/`
    this.#args = [
      join(EXAMPLE, 'server.mjs'),
      join(directory, 'files'),
      String(port),
      join(directory, 'data'),
    ]
  }

  static async start(): Promise<TodoServer> {
    const directory = await mkdtemp(join(tmpdir(), 'headwater-todo-'))
    await buildExample('shared-todo', join(directory, 'files'))
    const server = new TodoServer(directory, await reservedPort())
    await server.start()
    return server
  }

  async start(): Promise<void> {
    const [path, files, port, data] = this.#args
    const given = JSON.stringify({ files, port: Number(port), data })
    const code = `const { startServer } = await import('${pathToFileURL(path!).href}')
console.log((await startServer(${given})).url)`
    this.#process = new Child('--input-type=module', ['--eval', code])
    await this.#process.printed(1)
    expect(this.#process.lines).toHaveLength(1)
  }

  async kill(): Promise<void> {
    await this.#process?.kill()
    this.#process = undefined
  }

  /** Deletes the list. Only while the server is down. */
  async loseData(): Promise<void> {
    await rm(join(this.#directory, 'data'), { recursive: true })
  }

  async remove(): Promise<void> {
    await this.kill()
    await rm(this.#directory, { recursive: true, force: true })
  }
}

/** The list as a person uses it: by the accessible names of its elements. */
export class TodoPage {
  readonly page: Page
  readonly connection
  readonly newTask
  readonly tasks
  readonly undo
  readonly redo

  constructor(page: Page) {
    this.page = page
    this.connection = page.getByRole('status')
    this.newTask = page.getByRole('textbox', { name: 'New task' })
    this.tasks = page.getByRole('region', { name: 'Tasks' })
    this.undo = page.getByRole('button', { name: 'Undo' })
    this.redo = page.getByRole('button', { name: 'Redo' })
  }

  async add(...titles: string[]): Promise<void> {
    for (const title of titles) {
      await this.newTask.fill(title)
      await this.newTask.press('Enter')
      await this.tasks.getByText(title, { exact: true }).waitFor()
    }
  }

  check(title: string): Promise<void> {
    return this.tasks.getByRole('checkbox', { name: `Done: ${title}` }).click()
  }

  remove(title: string): Promise<void> {
    return this.tasks.getByRole('button', { name: `Remove: ${title}` }).click()
  }

  async rename(title: string, renamed: string): Promise<void> {
    await this.tasks.getByRole('button', { name: title, exact: true }).click()
    const field = this.tasks.getByRole('textbox', { name: 'Title' })
    await field.fill(renamed)
    await field.press('Enter')
    await this.tasks.getByText(renamed, { exact: true }).waitFor()
  }

  /** The titles in order; `[x]` before those that are done, `*` behind those that are pending. */
  titles(): Promise<string[]> {
    return this.tasks.locator('.task').evaluateAll((rows) =>
      rows.map((row) => {
        const { done, pending } = (row as HTMLElement).dataset
        const title = row.querySelector('.title')!.textContent
        return `${done === 'true' ? '[x] ' : ''}${title}${pending === 'true' ? ' *' : ''}`
      }),
    )
  }

  shows(...titles: string[]): Promise<void> {
    return expect.poll(() => this.titles()).toEqual(titles)
  }

  isConnection(text: string): Promise<void> {
    return expect.poll(() => this.connection.textContent()).toBe(text)
  }

  /** Waits until the page can be loaded without the server. */
  async isOfflineReady(): Promise<void> {
    const isControlled = () => this.page.evaluate(() => navigator.serviceWorker.controller !== null)
    await expect.poll(isControlled).toBe(true)
  }

  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(SCREENSHOTS, `todo-${name}.png`) })
  }
}
