import { writeSync } from 'node:fs'
import {
  currentProcess,
  processLiveness,
} from '../../../../adapters/storage/filesystem/lock/local-process.ts'

/** Reports its identity, and its liveness as an owner with a wrong start time. */
const own = await currentProcess()
writeSync(1, JSON.stringify({ own, liveness: await processLiveness({ ...own, started: '1' }, own) }))
