// @module-tag slow

import axe from 'axe-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { TodoPage, TodoServer } from './todo-page.ts'

const DESKTOP = { width: 1100, height: 720 }
const PHONE = { width: 390, height: 780 }
const LOOKS = [
  ['desktop-light', DESKTOP, 'light'],
  ['desktop-dark', DESKTOP, 'dark'],
  ['phone-light', PHONE, 'light'],
  ['phone-dark', PHONE, 'dark'],
] as const

describeInChromium('the example shared-todo', () => {
  const [one, other] = [restartableBrowser(), restartableBrowser()]
  let server: TodoServer
  beforeAll(async () => {
    server = await TodoServer.start()
  })
  afterAll(() => server?.remove())

  async function openOn(device: typeof one): Promise<TodoPage> {
    const todo = new TodoPage(await device.page(server.url))
    await todo.newTask.waitFor()
    return todo
  }

  it('begins empty, and looks as it should', async () => {
    const todo = await openOn(one)
    await todo.isConnection('Up to date')
    await expect.poll(() => todo.tasks.textContent()).toContain('Nothing to do yet')
    await look(todo, 'empty')
  })

  it('shows a change of one device on another one, and in another tab', async () => {
    const [mine, theirs, tab] = [await openOn(one), await openOn(other), await openOn(one)]
    await mine.add('Milk', 'Bread')
    for (const todo of [mine, theirs, tab]) await todo.shows('Milk', 'Bread')
    await theirs.check('Milk')
    await theirs.rename('Bread', 'Rye bread')
    for (const todo of [mine, theirs, tab]) await todo.shows('[x] Milk', 'Rye bread')
    await mine.isConnection('Up to date')
  })

  it('undoes and redoes by events that compensate', async () => {
    const [mine, theirs] = [await openOn(one), await openOn(other)]
    await mine.shows('[x] Milk', 'Rye bread')
    await mine.add('Honey')
    await mine.remove('Milk')
    await mine.check('Honey')
    await mine.shows('Rye bread', '[x] Honey')
    expect(await mine.undo.getAttribute('title')).toBe('Finish “Honey”')
    await mine.undo.click()
    await mine.shows('Rye bread', 'Honey')
    await mine.undo.click()
    // Back in its place, as it was.
    await mine.shows('[x] Milk', 'Rye bread', 'Honey')
    await theirs.shows('[x] Milk', 'Rye bread', 'Honey')
    await mine.page.keyboard.press('Control+Shift+Z')
    await mine.shows('Rye bread', 'Honey')
    await mine.page.keyboard.press('Control+Z')
    await mine.shows('[x] Milk', 'Rye bread', 'Honey')
    await mine.page.getByRole('button', { name: 'Remove what is done' }).click()
    await theirs.shows('Rye bread', 'Honey')
  })

  it('does not undo what another device has changed since', async () => {
    const [mine, theirs] = [await openOn(one), await openOn(other)]
    await mine.shows('Rye bread', 'Honey')
    await mine.rename('Honey', 'Acacia honey')
    await theirs.shows('Rye bread', 'Acacia honey')
    await theirs.rename('Acacia honey', 'Forest honey')
    await mine.shows('Rye bread', 'Forest honey')
    await mine.undo.click()
    await expect.poll(() => mine.undo.isDisabled()).toBe(true)
    expect(await mine.redo.isDisabled()).toBe(true)
    await mine.shows('Rye bread', 'Forest honey')
  })

  it('works while the server is down, and converges when it is back', async () => {
    const [mine, theirs] = [await openOn(one), await openOn(other)]
    await mine.shows('Rye bread', 'Forest honey')
    await theirs.shows('Rye bread', 'Forest honey')
    for (const todo of [mine, theirs]) await todo.isOfflineReady()
    await server.kill()

    await mine.add('Tea')
    await mine.check('Rye bread')
    await theirs.add('Coffee')
    await theirs.remove('Rye bread')
    await mine.shows('[x] Rye bread *', 'Forest honey', 'Tea *')
    await mine.isConnection('Offline · 2 changes wait')
    await theirs.shows('Forest honey', 'Coffee *')
    await mine.page.reload()
    await mine.shows('[x] Rye bread *', 'Forest honey', 'Tea *')
    await mine.check('Forest honey')
    await mine.isConnection('Offline · 3 changes wait')
    await look(mine, 'offline')

    await server.start()
    for (const todo of [mine, theirs]) {
      await todo.shows('[x] Forest honey', 'Tea', 'Coffee')
      await todo.isConnection('Up to date')
    }
    await look(mine, 'list')
  })

  it('is used by keyboard, and filters tasks', async () => {
    const todo = await openOn(one)
    const { keyboard } = todo.page
    await todo.newTask.focus()
    await keyboard.type('By keyboard')
    await keyboard.press('Enter')
    await todo.shows('[x] Forest honey', 'Tea', 'Coffee', 'By keyboard')
    await todo.page.getByRole('radio', { name: 'All' }).focus()
    await keyboard.press('ArrowRight')
    await todo.shows('Tea', 'Coffee', 'By keyboard')
    await keyboard.press('ArrowRight')
    await todo.shows('[x] Forest honey')
    await keyboard.press('ArrowLeft')
    await todo.tasks.getByRole('checkbox', { name: 'Done: By keyboard' }).focus()
    await keyboard.press('Space')
    await todo.shows('Tea', 'Coffee')
  })

  it('shows titles as text, never as markup', async () => {
    const markup = '<img src=x onerror="document.title=1">'
    const todo = await openOn(one)
    await todo.add(
      markup,
      `A title ${'as long as titles ever are, '.repeat(12)}${'and-without-a-break'.repeat(8)}`,
    )
    await look(todo, 'titles')
    await todo.remove(markup)
    expect(await todo.page.locator('img:not([src="icon.svg"])').count()).toBe(0)
    expect(await todo.page.title()).toBe('Pebble')
  })

  it('keeps its list when the server has lost its own, until the user decides', async () => {
    const todo = await openOn(one)
    await todo.isConnection('Up to date')
    const titles = await todo.titles()
    expect(titles.length).toBeGreaterThan(3)
    await server.kill()
    await server.loseData()
    await server.start()
    await todo.page.getByText('The list of the server is another one').waitFor()
    await todo.shows(...titles)
    await look(todo, 'stopped')
    await todo.page.getByRole('button', { name: 'Load it' }).click()
    await todo.shows()
    await todo.isConnection('Up to date')
    await todo.add('A new beginning')
    await todo.isConnection('Up to date')
  })
})

/** Takes screenshots, and checks accessibility and that nothing is wider than the page. */
async function look(todo: TodoPage, name: string): Promise<void> {
  const { page } = todo
  for (const [kind, size, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(size)
    await todo.screenshot(`${name}-${kind}`)
    await page.evaluate(axe.source)
    const violations = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: typeof import('axe-core') }
      return (await axe.run()).violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`),
      )
    })
    expect(violations).toEqual([])
    const { width, scrollWidth } = await page.evaluate(() => ({
      width: innerWidth,
      scrollWidth: document.documentElement.scrollWidth,
    }))
    expect(scrollWidth).toBe(width)
  }
}
