import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** The to-do list as a person uses it: by the accessible names of its elements. */
export class TodoPage {
  readonly page: Page
  readonly undo
  readonly #tasks

  constructor(page: Page) {
    this.page = page
    this.undo = page.getByRole('button', { name: 'Undo' })
    this.#tasks = page.getByRole('region', { name: 'Tasks' })
  }

  async add(...titles: string[]): Promise<void> {
    const newTask = this.page.getByRole('textbox', { name: 'New task' })
    for (const title of titles) {
      await newTask.fill(title)
      await newTask.press('Enter')
      await this.#tasks.getByText(title, { exact: true }).waitFor()
    }
  }

  check(title: string): Promise<void> {
    return this.#tasks.getByRole('checkbox', { name: `Done: ${title}` }).click()
  }

  remove(title: string): Promise<void> {
    return this.#tasks.getByRole('button', { name: `Remove: ${title}` }).click()
  }

  /** The titles in order; `[x]` before those that are done, `*` behind those that are pending. */
  shows(...titles: string[]): Promise<void> {
    const shown = () =>
      this.#tasks.locator('.task').evaluateAll((rows) =>
        rows.map((row) => {
          const { done, pending } = (row as HTMLElement).dataset
          const title = row.querySelector('.title')!.textContent
          return `${done === 'true' ? '[x] ' : ''}${title}${pending === 'true' ? ' *' : ''}`
        }),
      )
    return expect.poll(shown).toEqual(titles)
  }

  isConnection(text: string): Promise<void> {
    return expect.poll(() => this.page.getByRole('status').textContent()).toBe(text)
  }

  /** Waits until the page can be loaded without the server. */
  async isOfflineReady(): Promise<void> {
    const isControlled = () => this.page.evaluate(() => navigator.serviceWorker.controller !== null)
    await expect.poll(isControlled).toBe(true)
  }
}
