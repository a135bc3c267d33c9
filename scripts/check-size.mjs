// Bundles what a browser would load, minified and gzipped, prints the sizes, and fails when one exceeds its budget.
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { inProject } from './project.mjs'

/** Kilobytes of 1,000 bytes, RxJS and all other dependencies included, but for what is loaded only when it is needed. */
const BUDGETS = [
  {
    name: 'engine + memory',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'`,
    kB: 38,
  },
  {
    name: 'the same + HTTP handler',
    code: `export { open } from 'headwater'; export { memory } from 'headwater/memory'; export { createHandler } from 'headwater/http'`,
    kB: 75,
  },
]

let failed = false
for (const { name, code, kB } of BUDGETS) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: inProject('.') },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    splitting: true,
    outdir: 'out',
    write: false,
    logLevel: 'error',
  })
  const entry = outputFiles.find(({ path }) => path.endsWith('stdin.js'))
  const eager = outputFiles.filter(
    (file) => file === entry || entry.text.includes(`from"./${file.path.split('/').pop()}"`),
  )
  const size = gzipSync(Buffer.concat(eager.map(({ contents }) => contents))).length / 1000
  failed ||= size > kB
  console.log(`${size > kB ? 'too large' : 'ok'}: ${name}: ${size.toFixed(1)} kB of ${kB} kB`)
}
process.exitCode = failed ? 1 : 0
