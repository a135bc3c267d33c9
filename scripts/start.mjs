// `npm start` serves headwater with its storage in the directory `data`. Works in a fresh clone. Arguments
// after `--` are passed to `headwater serve`.
import { pathToFileURL } from 'node:url'
import { ensureBuilt, ensureInstalled, inProject } from './project.mjs'

ensureInstalled()
ensureBuilt()

// In this process, so that a signal reaches the server once and npm returns its exit code.
const cli = inProject('dist', 'cli.js')
process.argv = [process.execPath, cli, 'serve', ...process.argv.slice(2)]
await import(pathToFileURL(cli).href)
