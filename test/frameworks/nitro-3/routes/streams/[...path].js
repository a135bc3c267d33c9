import { createHandler } from 'headwater/http'
import { engine } from '../../engine.js'

let streams
export default async ({ req }) => {
  streams ??= createHandler(await engine(), { prefix: '/streams' })
  return streams(req)
}
