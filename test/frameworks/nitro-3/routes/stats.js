import { stats } from '../engine.js'

export default stats
