import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as esbuild from 'esbuild'
import * as vite from 'vite'
import webpack from 'webpack'

/**
 * Makes a page of the app. Resolves to the directory with its `index.html`. No bundler is configured beyond
 * its input and output.
 */
export type Bundler = (app: string) => Promise<string>

export const bundleWithVite: Bundler = async (app) => {
  const scripts = ['index.js', 'with-inline-worker.js']
  await writeFile(join(app, 'index.html'), page(scripts.map((script) => `src/${script}`)))
  await vite.build({ root: app, logLevel: 'error' })
  return join(app, 'dist')
}

export const bundleWithWebpack: Bundler = (app) => runWebpack(app, 'webpack', {})

/**
 * What is loaded late is in the one file, too. Not minified, which takes webpack longer than all the rest.
 */
export const bundleWithWebpackIntoOneFile: Bundler = (app) =>
  runWebpack(app, 'webpack-one-file', {
    module: { parser: { javascript: { dynamicImportMode: 'eager' } } },
    optimization: { minimize: false },
  })

async function runWebpack(app: string, name: string, options: webpack.Configuration): Promise<string> {
  const path = join(app, name)
  const stats = await new Promise<webpack.Stats>((resolve, reject) => {
    webpack({ mode: 'production', context: app, output: { path }, ...options }, (error, stats) => {
      if (stats === undefined) reject(error)
      else resolve(stats)
    })
  })
  if (stats.hasErrors()) throw new Error(stats.toString('errors-only'))
  await writeFile(join(path, 'index.html'), page(['main.js']))
  return path
}

/**
 * As `esbuild --bundle` does it: what is loaded late is in the one file, too. The worker's code is text that
 * the page makes a module worker of.
 */
export const bundleWithEsbuild: Bundler = async (app) => {
  const outdir = join(app, 'esbuild')
  await esbuild.build({ entryPoints: [join(app, 'src/index.js')], bundle: true, outdir, logLevel: 'error' })
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(app, 'src/worker.js')],
    bundle: true,
    format: 'esm',
    write: false,
    logLevel: 'error',
  })
  const code = JSON.stringify(outputFiles[0]!.text)
  await writeFile(
    join(outdir, 'with-inline-worker.js'),
    `globalThis.inWorker = () => new Promise((resolve, reject) => {
       const url = URL.createObjectURL(new Blob([${code}], { type: 'text/javascript' }))
       const worker = new Worker(url, { type: 'module' })
       worker.onmessage = ({ data: { result, error } }) => error === undefined ? resolve(result) : reject(new Error(error))
       worker.onerror = ({ message }) => reject(new Error(message))
     })`,
  )
  await writeFile(join(outdir, 'index.html'), page(['index.js', 'with-inline-worker.js']))
  return outdir
}

function page(scripts: readonly string[]): string {
  const tags = scripts.map((src) => `<script type="module" src="./${src}"></script>`)
  return `<!doctype html><title>app</title><link rel="icon" href="data:,">${tags.join('')}`
}
