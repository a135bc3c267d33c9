import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

const handle = createHandler(engine, { prefix: '/streams' })

export { handle as DELETE, handle as GET, handle as OPTIONS, handle as PATCH, handle as POST, handle as PUT }
