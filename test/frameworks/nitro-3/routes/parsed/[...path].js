import { createHandler } from 'headwater/http'
import { engine } from '../../engine.js'

let streams
export default async ({ req }) => {
  if (req.method === 'POST') await req.json()
  streams ??= createHandler(await engine(), { prefix: '/parsed' })
  return streams(req)
}
