import { writeSync } from 'node:fs'
import {
  currentProcess,
  processLiveness,
} from '../../../../adapters/storage/filesystem/lock/local-process.ts'

/** Tells who it is, and whether it takes itself for somebody who may run when its start is noted wrongly. */
const own = await currentProcess()
writeSync(1, JSON.stringify({ own, liveness: await processLiveness({ ...own, started: '1' }, own) }))
