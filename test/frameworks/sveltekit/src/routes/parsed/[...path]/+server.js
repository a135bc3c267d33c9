import { createHandler } from 'headwater/http'
import { engine } from '../../../../engine.js'

let streams
export async function fallback({ request }) {
  if (request.method === 'POST') await request.json()
  streams ??= createHandler(await engine(), { prefix: '/parsed' })
  return streams(request)
}
