import { writeSync } from 'node:fs'
import { mayRun, thisProcess } from '../../../../adapters/storage/filesystem/process-identity.ts'

/** Tells who it is, and whether it takes itself for somebody who may run when its start is noted wrongly. */
const own = await thisProcess()
writeSync(1, JSON.stringify({ own, mayRun: await mayRun({ ...own, started: '1' }, own) }))
