import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Format } from 'esbuild'

const PROJECT = join(import.meta.dirname, '..', '..')

/** The example of the README that is marked with this name, bundled as it says there. */
export async function bundledExample(name: string, format: Format): Promise<Uint8Array> {
  const readme = await readFile(join(PROJECT, 'README.md'), 'utf8')
  const [, code] = new RegExp(`^\`\`\`ts ${name}\\.ts\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(readme) ?? []
  if (code === undefined) throw new Error(`the README has no example ${name}.ts`)
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: PROJECT, loader: 'ts' },
    bundle: true,
    write: false,
    platform: 'browser',
    format,
    external: ['./zstd-module-*', 'node:http2'],
    logLevel: 'error',
  })
  return outputFiles[0]!.contents
}
