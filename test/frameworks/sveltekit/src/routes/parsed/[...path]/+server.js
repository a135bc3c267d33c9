import { createHandler } from 'headwater/http'
import { engine } from '../../../../engine.js'

const streams = createHandler(engine, { prefix: '/parsed' })
export async function fallback({ request }) {
  if (request.method === 'POST') await request.json()
  return streams(request)
}
