import { createHandler } from 'headwater/http'
import { engine } from '../../engine.js'

const streams = createHandler(engine, { prefix: '/parsed' })
export default async ({ req }) => {
  if (req.method === 'POST') await req.json()
  return streams(req)
}
