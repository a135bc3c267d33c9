import { play } from '../harness/play.ts'
import { LEAKS } from './leaks.ts'

await play(LEAKS)
