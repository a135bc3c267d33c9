// `npm start`: serves headwater with its storage in the directory `data`, from a fresh clone on. Arguments after `--` go to `headwater serve`.
import { pathToFileURL } from 'node:url'
import { ensureBuilt, ensureInstalled, inProject } from './project.mjs'
import { startArguments } from './start-arguments.mjs'

ensureInstalled()
ensureBuilt()

// In this process, so that a signal reaches the server once and its exit code is npm's.
const cli = inProject('dist', 'cli.js')
process.argv = [process.execPath, cli, ...startArguments(process.argv.slice(2))]
await import(pathToFileURL(cli).href)
