import { stats } from '../engine.js'

export default defineEventHandler(stats)
