import { playAsChild } from '../harness/play.ts'
import { BROKEN } from './targets.ts'

await playAsChild(BROKEN)
