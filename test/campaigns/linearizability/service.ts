import { serve } from '../../../adapters/node/index.ts'
import { postgres } from '../../../adapters/storage/postgres/index.ts'
import { open } from '../../../src/index.ts'

/** Serves the streams of a database until it is killed. Prints its address. */
const [connectionString = ''] = process.argv.slice(2)
const hw = await open({ storage: postgres({ connectionString }) })
const server = await serve(hw, { auth: 'none' })
console.log(server.url)
