import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const SCREENSHOTS = join(import.meta.dirname, '..', '..', 'dist', 'screenshots')

/** The chat as a person uses it: by the accessible names of its elements. */
export class ChatPage {
  readonly page: Page
  readonly alert
  readonly banner
  readonly log
  readonly message
  readonly newRoom
  readonly rooms

  constructor(page: Page) {
    this.page = page
    this.alert = page.locator('.alert')
    this.banner = page.locator('#connection')
    this.log = page.getByRole('log')
    this.message = page.getByRole('textbox', { name: 'Message', exact: true })
    this.newRoom = page.getByRole('textbox', { name: 'New room' })
    this.rooms = page.getByRole('navigation', { name: 'Rooms' })
  }

  /** Waits until it can be used, and works offline. */
  async isReady(): Promise<void> {
    await this.newRoom.click()
    const isControlled = () => this.page.evaluate(() => navigator.serviceWorker.controller !== null)
    await expect.poll(isControlled).toBe(true)
  }

  async call(name: string): Promise<void> {
    const field = this.page.getByRole('textbox', { name: 'Your name' })
    await field.fill(name)
    await field.press('Enter')
  }

  async create(room: string): Promise<void> {
    await this.newRoom.fill(room)
    await this.newRoom.press('Enter')
  }

  /** Creates a room and waits until it is open. */
  async begin(room: string): Promise<void> {
    await this.create(room)
    await this.page.getByRole('heading', { name: room, exact: true }).waitFor()
  }

  /** Creates a room and waits until it is on the server. */
  async beginOnServer(room: string): Promise<void> {
    await this.begin(room)
    const path = `/v1/streams/${encodeURIComponent(`rooms/${room}`)}`
    const status = () => this.page.evaluate(async (path) => (await fetch(path)).status, path)
    await expect.poll(status).toBe(200)
  }

  async enter(room: string): Promise<void> {
    await this.rooms.getByRole('link', { name: room }).click()
    await this.page.getByRole('heading', { name: room, exact: true }).waitFor()
  }

  async say(...texts: string[]): Promise<void> {
    for (const text of texts) {
      await this.message.fill(text)
      await this.message.press('Enter')
      await this.log.getByText(text).last().waitFor()
    }
  }

  /** Pastes and sends a message, without waiting for the outcome. Typing a long text would be slow. */
  async write(text: string): Promise<void> {
    await this.message.evaluate((field: HTMLTextAreaElement, value) => {
      field.value = value
      field.form?.requestSubmit()
    }, text)
  }

  /** The texts of the messages, in order. */
  messages(): Promise<string[]> {
    return this.log.locator('.text').allTextContents()
  }

  /** The texts of the messages that are not on the server yet, in order. */
  waiting(): Promise<string[]> {
    return this.log.locator('.pending .text').allTextContents()
  }

  /** Waits until everything is on the server. */
  hasSent(): Promise<void> {
    return expect.poll(() => this.waiting()).toEqual([])
  }

  shows(...texts: string[]): Promise<void> {
    return expect.poll(() => this.messages()).toEqual(texts)
  }

  /** The names of the rooms, in order. */
  async roomNames(): Promise<string[]> {
    return this.rooms.locator('.room-name').allTextContents()
  }

  /** The text of a room's link: its name, time, latest message and number of unread messages. */
  linkOf(room: string) {
    return this.rooms.getByRole('link', { name: room })
  }

  async screenshot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
  }
}
