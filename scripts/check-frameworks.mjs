// `npm run check:frameworks` installs the packed tarball in an app of each framework and checks it there.
// Arguments are names of apps: `npm run check:frameworks -- hono express`.
import { checkFrameworks } from '../test/frameworks/harness/run.mjs'
import { assertInstalled, ensureBuilt } from './project.mjs'

assertInstalled()
// Without declarations, npm packs nothing.
ensureBuilt({ withDeclarations: true })
process.exit((await checkFrameworks(process.argv.slice(2))) ? 0 : 1)
