import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

const streams = createHandler(engine, { prefix: '/parsed' })
async function handle(request) {
  if (request.method === 'POST') await request.json()
  return streams(request)
}

export { handle as GET, handle as POST }
