import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

let streams
async function handle(request) {
  streams ??= createHandler(await engine(), { prefix: '/uncompressed', compression: false })
  return streams(request)
}

export { handle as GET, handle as POST }
