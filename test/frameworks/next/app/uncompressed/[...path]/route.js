import { createHandler } from 'headwater/http'
import { engine } from '../../../engine.js'

const handle = createHandler(engine, { prefix: '/uncompressed', compression: false })

export { handle as GET, handle as POST }
