import { stats } from '../../engine.js'

export const dynamic = 'force-dynamic'

export const GET = async () => Response.json(await stats())
