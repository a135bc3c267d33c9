// `npm run check:frameworks` installs the packed tarball in an app of each framework and checks it there.
// Arguments are names of apps: `npm run check:frameworks -- hono express`.
import { checkFrameworks } from '../test/frameworks/harness/run.mjs'
import { assertInstalled, build } from './project.mjs'

assertInstalled()
// With declarations, without which npm packs nothing.
build()
process.exit((await checkFrameworks(process.argv.slice(2))) ? 0 : 1)
