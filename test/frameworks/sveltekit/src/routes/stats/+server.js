import { stats } from '../../../engine.js'

export const GET = async () => Response.json(await stats())
