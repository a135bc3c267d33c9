// `npm run bench`: every benchmark, or those named: `npm run bench -- encryption`. Each prints its table.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { buildSync } from 'esbuild'
import { inProject } from './project.mjs'

const all = readdirSync(inProject('bench')).map((file) => file.replace(/\.ts$/, ''))
const asked = process.argv.slice(2)
const unknown = asked.find((name) => !all.includes(name))
if (unknown !== undefined) {
  console.error(`There is no benchmark ${unknown}. Benchmarks: ${all.join(', ')}`)
  process.exit(2)
}

for (const name of asked.length > 0 ? asked : all) {
  const { outputFiles } = buildSync({
    entryPoints: [inProject('bench', `${name}.ts`)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Its WebAssembly loader does not survive being bundled as a module.
    external: ['libsodium-wrappers'],
    write: false,
    logLevel: 'error',
  })
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-'], {
    input: outputFiles[0].contents,
    stdio: ['pipe', 'inherit', 'inherit'],
    cwd: inProject('.'),
  })
  if (status !== 0) process.exit(status ?? 1)
}
