import { createDurableStreamsHandler } from 'headwater/durable-streams'
import { engine } from '../../../../engine.js'

/** Only reads: what is written comes from the server. */
export const GET = createDurableStreamsHandler(engine, { basin: 'chat', auth: 'none' })
