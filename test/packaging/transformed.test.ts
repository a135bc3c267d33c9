// @module-tag slow

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runInThisContext } from 'node:vm'
import { type BuildOptions, build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type InstalledApp, installApp } from './installed-app.ts'

let app: InstalledApp
beforeAll(async () => {
  app = await installApp()
})
afterAll(() => app?.remove())

/** What a program of the app prints, run as it is or bundled. */
async function outputOf(code: string, options?: BuildOptions): Promise<string> {
  const program = join(app.directory, 'program.mjs')
  await writeFile(program, code)
  if (options !== undefined) {
    const output = { outfile: program, allowOverwrite: true, bundle: true, format: 'esm' } as const
    await build({ entryPoints: [program], ...output, logLevel: 'error', ...options })
  }
  return execFileSync(process.execPath, [program], { encoding: 'utf8' })
}

describe('observables work with the rxjs of the app', () => {
  const PROGRAM = `
    import { open } from 'headwater'
    import { memory } from 'headwater/memory'
    import { concatMap, delay, firstValueFrom, isObservable, merge, of, take, toArray } from 'rxjs'
    const hw = await open({ storage: memory() })
    const stream = hw.basin('my-basin').stream('my-stream')
    await stream.append(['one', 'two'])
    const records$ = stream.follow({ seqNum: 0 }).records$
    const twice$ = records$.pipe(concatMap(({ body }) => of(body, body).pipe(delay(1))), take(3), toArray())
    console.log(isObservable(records$) && (await firstValueFrom(merge(twice$))).join() === 'one,one,two')
    await hw.close()`

  it.each<[string, BuildOptions | undefined]>([
    ['in Node', undefined],
    ['bundled for Node', { platform: 'node' }],
    ['bundled for browsers', { platform: 'browser' }],
  ])('%s', async (_, options) => {
    expect(await outputOf(PROGRAM, options)).toBe('true\n')
  })
})

describe('the script of the console page runs, and its policy has its hash', () => {
  const PROGRAM = `
    import { consolePage } from 'headwater/console-page'
    console.log(JSON.stringify(consolePage()))`

  it.each<[string, BuildOptions | undefined]>([
    ['as it is installed', undefined],
    ['bundled', {}],
    ['minified', { minify: true }],
    ['with the names of functions kept', { keepNames: true }],
  ])('%s', async (_, options) => {
    const { html, contentSecurityPolicy } = JSON.parse(await outputOf(PROGRAM, options))
    const [, script] = /<script type="module">(.*)<\/script>/s.exec(html)!
    const hash = createHash('sha256').update(script!).digest('base64')
    expect(contentSecurityPolicy).toContain(`'sha256-${hash}'`)
    // Without a page to show itself in, the script gets as far as that.
    expect(() => runInThisContext(`(() => {${script}})()`)).toThrow('CSSStyleSheet is not defined')
  })
})
