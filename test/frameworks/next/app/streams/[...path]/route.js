import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

let streams
async function handle(request) {
  streams ??= createHandler(await engine(), { prefix: '/streams' })
  return streams(request)
}

export { handle as DELETE, handle as GET, handle as OPTIONS, handle as PATCH, handle as POST, handle as PUT }
