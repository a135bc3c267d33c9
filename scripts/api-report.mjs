// `npm run check:api` compares the declarations with the reports in `api`, which API Extractor writes, one for
// each subpath of the package, so that a review shows each change of the public API. With --write, it updates
// the reports.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor'
import { inProject, run } from './project.mjs'

const isWriting = process.argv.includes('--write')
const { compilerOptions: options } = JSON.parse(readFileSync(inProject('tsconfig.json'), 'utf8'))
const silent = { default: { logLevel: 'none' } }

/** Returns whether the report matches the declarations, or has been written. */
function report(typesPath, reportFileName) {
  const entry = inProject(typesPath)
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: inProject('package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: inProject('.'),
      newlineKind: 'lf',
      mainEntryPointFilePath: entry,
      compiler: {
        overrideTsconfig: {
          compilerOptions: { ...options, types: ['node'] },
          files: [entry],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName,
        reportFolder: inProject('api'),
        reportTempFolder: inProject('node_modules', '.cache', 'api'),
      },
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
  })
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: isWriting,
    messageCallback: (message) => {
      message.handled = true
    },
  })
  return isWriting || !apiReportChanged
}

run(process.execPath, [inProject('scripts', 'declarations.mjs')])
const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
const types = new Map(
  Object.entries(exports).flatMap(([subpath, { types }]) =>
    types === undefined ? [] : [[`headwater${subpath.slice(1).replace('/', '-')}.api.md`, types]],
  ),
)
const left = readdirSync(inProject('api')).filter((name) => !types.has(name))
if (isWriting) for (const name of left) rmSync(inProject('api', name))
const changed = [...types].filter(([name, path]) => !report(path, name)).map(([name]) => name)
if (!isWriting) changed.push(...left)
for (const name of changed) console.error(`api/${name} does not match the declarations`)
if (changed.length > 0) {
  console.error('run `npm run check:api -- --write`, and review the difference')
  process.exitCode = 1
}
