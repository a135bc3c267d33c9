import compression from 'compression'
import express from 'express'
import { toNodeHandler } from 'headwater/node'
import { hw } from './streams.js'

const app = express()
app.use(compression())
app.use('/streams', toNodeHandler(hw)) // before any body parser
app.use(express.json())
app.use('/parsed', toNodeHandler(hw))
app.get('/stats', (_req, res) => res.json(hw.stats()))
app.listen(Number(process.env.PORT))
