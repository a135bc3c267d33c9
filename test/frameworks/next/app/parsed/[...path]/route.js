import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

let streams
async function handle(request) {
  if (request.method === 'POST') await request.json()
  streams ??= createHandler(await engine(), { prefix: '/parsed' })
  return streams(request)
}

export { handle as GET, handle as POST }
