import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** The local-first chat as a person uses it: by the accessible names of its elements. */
export class ChatPage {
  readonly page: Page
  readonly log
  readonly #message
  readonly #newRoom
  readonly #rooms

  constructor(page: Page) {
    this.page = page
    this.log = page.getByRole('log')
    this.#message = page.getByRole('textbox', { name: 'Message', exact: true })
    this.#newRoom = page.getByRole('textbox', { name: 'New room' })
    this.#rooms = page.getByRole('navigation', { name: 'Rooms' })
  }

  /** Waits until it can be used, and works offline. */
  async isReady(): Promise<void> {
    await this.#newRoom.click()
    const isControlled = () => this.page.evaluate(() => navigator.serviceWorker.controller !== null)
    await expect.poll(isControlled).toBe(true)
  }

  async call(name: string): Promise<void> {
    const field = this.page.getByRole('textbox', { name: 'Your name' })
    await field.fill(name)
    await field.press('Enter')
  }

  /** Creates a room and waits until it is open. */
  async begin(room: string): Promise<void> {
    await this.#newRoom.fill(room)
    await this.#newRoom.press('Enter')
    await this.page.getByRole('heading', { name: room, exact: true }).waitFor()
  }

  async enter(room: string): Promise<void> {
    await this.#rooms.getByRole('link', { name: room }).click()
    await this.page.getByRole('heading', { name: room, exact: true }).waitFor()
  }

  async say(...texts: string[]): Promise<void> {
    for (const text of texts) {
      await this.#message.fill(text)
      await this.#message.press('Enter')
      await this.log.getByText(text).last().waitFor()
    }
  }

  /** Waits until everything is on the server. */
  hasSent(): Promise<void> {
    return expect.poll(() => this.log.locator('.pending .text').count()).toBe(0)
  }

  /** The texts of the messages, in order. */
  shows(...texts: string[]): Promise<void> {
    return expect.poll(() => this.log.locator('.text').allTextContents()).toEqual(texts)
  }
}
