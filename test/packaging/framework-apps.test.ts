// @module-tag slow

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Engine } from '../../src/index.ts'
import { serveDirectory } from '../browser/static-servers.ts'
import { inChromium } from '../browser/support.ts'
import { namedExample, PROJECT } from '../docs/examples.ts'
import { type InstalledApp, installApp } from './installed-app.ts'

const PAGE = 'docs/react.md'

/** Compiles components of Vue, as its plugins for bundlers do. */
const vueComponents: Plugin = {
  name: 'vue-components',
  setup({ onLoad }) {
    onLoad({ filter: /\.vue$/ }, async () => {
      const { compileScript, parse } = await import('vue/compiler-sfc')
      const { descriptor } = parse(await namedExample(PAGE, 'Room', 'vue'))
      const options = { id: 'room', inlineTemplate: true }
      return { contents: compileScript(descriptor, options).content, loader: 'ts' }
    })
  },
}

/** Compiles components of Svelte: the example, and one that shows it. */
const svelteComponents: Plugin = {
  name: 'svelte-components',
  setup({ onLoad }) {
    onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const { compile } = await import('svelte/compiler')
      const isApp = path.endsWith('App.svelte')
      const source = isApp ? SVELTE_APP : await namedExample(PAGE, 'Room', 'svelte')
      return { contents: compile(source, { generate: 'client' }).js.code, loader: 'js' }
    })
  },
}

const SVELTE_APP = `
<script>
  import Room from './Room.svelte'
  let name = $state('general')
  export function show(room) { name = room }
</script>
{#if name}<Room {name} />{/if}`

/** The component of Solid without its form, and without JSX, which only a Babel plugin compiles. */
const SOLID_ROOM = `
import { useStream } from 'headwater/solid'
import { For } from 'solid-js'
import h from 'solid-js/h'
import { hw } from './streams.js'

export function Room(props) {
  const stream = () => hw.basin('my-app').stream('rooms/' + props.name)
  const room = useStream(stream, () => ({ tailOffset: 50 }), { create: true })
  return h('ol', h(For, { each: () => room().records }, ({ body }) => h('li', body)))
}`

/** An app that shows the room that a test names, and none if the name is empty. */
const MAIN = {
  Vue: `
import { createApp, h, shallowRef } from 'vue'
import Room from './Room.vue'
const name = shallowRef('general')
createApp(() => name.value && h(Room, { name: name.value })).mount('#root')
globalThis.show = (room) => { name.value = room }`,
  Svelte: `
import { mount } from 'svelte'
import App from './App.svelte'
const app = mount(App, { target: document.getElementById('root') })
globalThis.show = (room) => app.show(room)`,
  Solid: `
import { createSignal, createComponent, Show } from 'solid-js'
import { render } from 'solid-js/web'
import { Room } from './Room.js'
const [name, show] = createSignal('general')
render(() => createComponent(Show, {
  get when() { return name() !== '' },
  get children() { return createComponent(Room, { get name() { return name() } }) },
}), document.getElementById('root'))
globalThis.show = show`,
}

declare global {
  var show: (room: string) => void
  var hw: Engine
}

inChromium('the components of docs/react.md', (browser) => {
  let app: InstalledApp
  beforeAll(async () => {
    app = await installApp()
  })
  afterAll(() => app?.remove())

  async function openApp(framework: keyof typeof MAIN): Promise<Page> {
    const directory = join(app.directory, framework)
    await mkdir(directory)
    const files = {
      'streams.js': await namedExample(PAGE, 'streams', 'js'),
      'Room.js': SOLID_ROOM,
      'Room.vue': '',
      'Room.svelte': '',
      'App.svelte': '',
      'start.js': `import { hw } from './streams.js'\n${MAIN[framework]}\nglobalThis.hw = hw`,
      'index.html': `<!doctype html><title>Rooms</title><link rel="icon" href="data:,">
<div id="root"></div><script type="module" src="main.js"></script>`,
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
    await build({
      entryPoints: [join(directory, 'start.js')],
      outfile: join(directory, 'main.js'),
      bundle: true,
      format: 'esm',
      platform: 'browser',
      conditions: ['browser', 'production'],
      define: {
        'process.env.NODE_ENV': '"production"',
        __VUE_OPTIONS_API__: 'false',
        __VUE_PROD_DEVTOOLS__: 'false',
        __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
      },
      // The frameworks themselves; headwater is in the app.
      nodePaths: [join(PROJECT, 'node_modules')],
      external: ['./zstd-module-*'],
      plugins: [vueComponents, svelteComponents],
      logLevel: 'error',
    })
    const server = await serveDirectory(directory)
    onTestFinished(() => server.close())
    const page = await browser.page(`${server.url}/index.html`)
    await page.locator('ol').waitFor({ state: 'attached' })
    return page
  }

  it.each(Object.keys(MAIN) as (keyof typeof MAIN)[])('%s shows one room at a time, live', async (name) => {
    const page = await openApp(name)
    const shows = (...messages: string[]) =>
      expect.poll(() => page.getByRole('listitem').allTextContents()).toEqual(messages)
    const append = (room: string, message: string) =>
      page.evaluate(([name, body]) => hw.basin('my-app').stream(`rooms/${name}`).append(body), [
        room,
        message,
      ] as const)
    const openReads = () => page.evaluate(() => hw.stats().openReads)
    await append('general', 'hello')
    await append('general', 'hi')
    await shows('hello', 'hi')
    await page.evaluate(() => globalThis.show('random'))
    await shows()
    await append('random', 'elsewhere')
    await shows('elsewhere')
    await expect.poll(openReads).toBe(1)
    // Without the component, nothing is read.
    await page.evaluate(() => globalThis.show(''))
    await expect.poll(openReads).toBe(0)
  })
})
