import { runAll } from './harness/play.ts'
import { SCENARIOS } from './scenarios/index.ts'

await runAll(SCENARIOS)
