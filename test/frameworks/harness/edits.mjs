import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from './until.mjs'

const RELOAD_MS_MAX = 20_000
/** A watcher on a busy machine may miss a change that closely follows another: the edit is saved again. */
const SAVE_AGAIN_MS = 10_000
/** A server that replaces its worker may lose a request: Nitro 2 does where it finds `CI` set. */
const REQUEST_MS_MAX = 3_000

/** What a development server has to pass, which loads modules again after an edit. */
export const EDIT_CHECKS = {
  'source edits': async (app, { edited }) => {
    const path = join(app.directory, edited)
    const source = await readFile(path, 'utf8')
    const stream = await app.createStream('edited')
    const bodies = []
    try {
      for (const body of ['first', 'second']) {
        let savedAt = Number.NEGATIVE_INFINITY
        const isLoaded = async () => {
          if (performance.now() - savedAt > SAVE_AGAIN_MS) {
            await writeFile(path, `${source}\nconsole.log('loaded after the ${body} edit')\n`)
            savedAt = performance.now()
          }
          const signal = AbortSignal.timeout(REQUEST_MS_MAX)
          await app.request('/v1/basins', { signal }).catch(() => {})
          return app.output.includes(`loaded after the ${body} edit`)
        }
        await until(`the ${body} edit`, isLoaded, RELOAD_MS_MAX)
        bodies.push(body)
        const appended = await app.append(stream, body)
        assert.equal(appended.status, 200, String(await appended.bytes()))
        assert.deepEqual(await app.bodies(stream), bodies)
      }
    } finally {
      await writeFile(path, source)
    }
  },
}
