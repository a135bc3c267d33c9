import { playAsChild } from './harness/play.ts'
import { TARGETS } from './targets/index.ts'

await playAsChild(TARGETS)
