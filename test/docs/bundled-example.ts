import { build, type Format } from 'esbuild'
import { namedExample, PROJECT } from './examples.ts'

/** An example of a page that is marked with this name, bundled for a browser as `docs/browser.md` says. */
export async function bundledExample(page: string, name: string, format: Format): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents: await namedExample(page, name), resolveDir: PROJECT, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'browser',
    format,
    external: ['./zstd-module-*', 'node:http2'],
    logLevel: 'error',
  })
  return outputFiles[0]!.contents
}
