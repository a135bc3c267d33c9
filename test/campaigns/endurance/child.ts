import { play } from './harness/play.ts'
import { SCENARIOS } from './scenarios/index.ts'

await play(SCENARIOS)
