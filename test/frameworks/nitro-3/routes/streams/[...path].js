import { createHandler } from 'headwater/http'
import { engine } from '../../engine.js'

const streams = createHandler(engine, { prefix: '/streams' })
export default ({ req }) => streams(req)
