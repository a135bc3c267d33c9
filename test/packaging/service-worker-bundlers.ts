import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as esbuild from 'esbuild'
import * as vite from 'vite'
import webpack from 'webpack'
import type { Bundler } from './bundlers.ts'

/**
 * Each makes one file of the service worker, as docs/browser.md says: resolves to the directory with
 * `service-worker.js` and a page.
 */
export const serviceWorkerBundlers: Readonly<Record<string, Bundler>> = {
  Vite: async (app) => {
    const outDir = join(app, 'vite-service-worker')
    await vite.build({
      root: app,
      configFile: false,
      logLevel: 'error',
      build: {
        outDir,
        lib: {
          entry: join(app, 'src/service-worker.js'),
          formats: ['iife'],
          name: 'serviceWorker',
          fileName: () => 'service-worker.js',
        },
      },
    })
    return withPage(outDir)
  },
  esbuild: async (app) => {
    const outdir = join(app, 'esbuild-service-worker')
    await esbuild.build({
      entryPoints: [join(app, 'src/service-worker.js')],
      bundle: true,
      format: 'iife',
      external: ['./zstd-module-*'],
      outdir,
      logLevel: 'error',
    })
    return withPage(outdir)
  },
  webpack: async (app) => {
    const path = join(app, 'webpack-service-worker')
    const stats = await new Promise<webpack.Stats>((resolve, reject) => {
      webpack(
        {
          mode: 'production',
          context: app,
          target: 'webworker',
          entry: './src/service-worker.js',
          output: { path, filename: 'service-worker.js' },
          module: { parser: { javascript: { dynamicImportMode: 'eager' } } },
          // That takes webpack longer than everything else.
          optimization: { minimize: false },
        },
        (error, stats) => (stats === undefined ? reject(error) : resolve(stats)),
      )
    })
    if (stats.hasErrors()) throw new Error(stats.toString('errors-only'))
    return withPage(path)
  },
}

async function withPage(directory: string): Promise<string> {
  await writeFile(
    join(directory, 'index.html'),
    '<!doctype html><title>app</title><link rel="icon" href="data:,">',
  )
  return directory
}
