import { runAll } from '../harness/play.ts'
import { LEAKS } from './leaks.ts'

await runAll(LEAKS)
