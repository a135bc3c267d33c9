import { createHandler } from 'headwater/http'
import { engine } from '../../../../engine.js'

let streams
export async function fallback({ request }) {
  streams ??= createHandler(await engine(), { prefix: '/streams' })
  return streams(request)
}
